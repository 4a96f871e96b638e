/// GoogleMock's matchers alone, for EXPECT_THAT: a fifth of what its header of everything takes to
/// compile.
#pragma once

#include <gmock/gmock-matchers.h>
#include <gmock/gmock-more-matchers.h>
