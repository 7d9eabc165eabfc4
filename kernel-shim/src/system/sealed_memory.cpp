#include "sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "lrpc/detail/shim/system/size_limit.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // since Linux 6.3; refused with EINVAL before
#endif

namespace lrpc::shim {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Refuses huge pages (hugetlb): they come from a pool that may be empty, and after a peer punches a hole our next
/// access would raise SIGBUS. Such files have a large block size. Files of ordinary memory may have one, too, if the
/// administrator has made huge pages their default; but only hugetlb files refuse an offset that is no multiple of
/// their page (mmap(2), "Huge page (Huge TLB) mappings"). (If the administrator forbids overcommitment, the commit
/// limit does the same to any memfd.)
Status check_page_size(int fd, const struct stat& status, const std::string& what) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (status.st_blksize >= 0 && static_cast<std::size_t>(status.st_blksize) <= page) return {};
  void* const second = mmap(nullptr, page, PROT_NONE, MAP_SHARED, fd, static_cast<off_t>(page));
  if (second == MAP_FAILED) {
    if (errno == EINVAL) return Error{Errc::bad_message, what + " is of huge pages"};
    return system_error("mmap of a memfd", errno);
  }
  munmap(second, page);
  return {};
}

}  // namespace

Result<UniqueFd> create_memory(const char* name) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("memfd_create", errno);
  return fd;
}

Result<UniqueFd> create_sealed_memory(const char* name, std::uint64_t size) {
  auto fd = create_memory(name);
  if (!fd) return fd;
  const int err = without_size_signal([&] { return ftruncate(fd->get(), static_cast<off_t>(size)) == 0 ? 0 : errno; });
  if (err != 0) return system_error("ftruncate of a memfd", err);
  if (fcntl(fd->get(), F_ADD_SEALS, kSeals) != 0) return system_error("sealing a memfd", errno);
  return fd;
}

Status check_sealed_memory(int fd, std::uint64_t size, const char* what) {
  const std::string text = what;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return Error{Errc::bad_message, text + " is not a sealed memfd"};
  if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) return Error{Errc::bad_message, text + " is read-only"};
  // A direct system call: the C library's fstat may be newfstatat, which a sealed domain may not call.
  struct stat status {};
  if (syscall(SYS_fstat, fd, &status) != 0) return system_error("fstat of a memfd", errno);
  if (Status good = check_page_size(fd, status, text); !good) return good;
  const off_t is = status.st_size;
  if (static_cast<std::uint64_t>(is) == size) return {};
  return Error{Errc::bad_message, text + " has " + std::to_string(is) + " bytes, and needs " + std::to_string(size)};
}

}  // namespace lrpc::shim
