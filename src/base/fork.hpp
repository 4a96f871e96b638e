#pragma once
#include "base/process.hpp"  // IWYU pragma: export
