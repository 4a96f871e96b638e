/// Semaphores on the embedded engine and virtual time.
#pragma once

#include "lock/semaphore/books.hpp"
#include "lock/semaphore/guest.hpp"
#include "lock/virtual_lock.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"

namespace sluice {

using test::Guest;

class VirtualSemaphore : public VirtualLock {
 protected:
  Books books() { return books_of(*store_, "desks"); }
};

}  // namespace sluice
