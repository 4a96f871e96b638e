#include "proxy/ring/ring.hpp"
