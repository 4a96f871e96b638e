/// SOCI without Boost: its headers offer conversions of Boost types where it was built with them.
/// We use none, and need no Boost for them. Nothing in SOCI's binary interface depends on it.
#pragma once

#include <soci-config.h>
#undef SOCI_HAVE_BOOST
#undef SOCI_HAVE_BOOST_DATE_TIME
#include <soci.h>
