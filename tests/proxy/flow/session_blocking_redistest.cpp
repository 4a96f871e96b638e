#include "proxy/flow/two_servers.hpp"
