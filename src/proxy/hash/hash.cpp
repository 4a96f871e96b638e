#include "proxy/hash/hash.hpp"
