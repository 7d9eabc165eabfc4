// Maps the AllocationFaults of this process, for a program that counts its own lives or decides what fails.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "allocation_faults.h"

namespace testing_lrpc {

/// Never unmapped. Null: the test has named no file.
inline AllocationFaults* map_own_faults() {
  const char* const path = std::getenv("LRPC_ALLOCATION_FAULTS");
  const int fd = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return nullptr;
  void* const page = ::mmap(nullptr, sizeof(AllocationFaults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return page != MAP_FAILED ? static_cast<AllocationFaults*>(page) : nullptr;
}

}  // namespace testing_lrpc
