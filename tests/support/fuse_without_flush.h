// A FUSE file system of one file, whose daemon answers everything but FLUSH: so close(2) of the file waits for ever.
#pragma once

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace testing_lrpc {

/// Mounts it at `path`, an existing file. `device`: /dev/fuse, from which the daemon reads. Needs root. False: it
/// cannot be mounted, see errno.
inline bool mount_without_flush(const std::string& path, int device) {
  const std::string options = "fd=" + std::to_string(device) + ",rootmode=100000,user_id=0,group_id=0,allow_other";
  return ::mount("lrpc-stuck", path.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

template <class Out>
void answer_fuse(int device, std::uint64_t unique, const Out& out) {
  std::array<std::byte, sizeof(fuse_out_header) + sizeof(Out)> reply{};
  const fuse_out_header header{static_cast<std::uint32_t>(reply.size()), 0, unique};
  std::memcpy(reply.data(), &header, sizeof header);
  std::memcpy(reply.data() + sizeof header, &out, sizeof out);
  (void)!::write(device, reply.data(), reply.size());
}
inline void refuse_fuse(int device, std::uint64_t unique, int error) {
  const fuse_out_header header{sizeof header, error, unique};
  (void)!::write(device, &header, sizeof header);
}

/// The daemon: takes a request, if there is one, and answers it unless it is a FLUSH. False: the file system has gone.
inline bool serve_without_flush(int device) {
  static std::array<std::byte, 65536> request;
  const ssize_t got = ::read(device, request.data(), request.size());
  if (got < 0 && errno == ENODEV) return false;
  if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return true;
  fuse_in_header in{};
  std::memcpy(&in, request.data(), sizeof in);
  switch (in.opcode) {
    case FUSE_INIT: {
      fuse_init_out out{};
      out.major = FUSE_KERNEL_VERSION;
      out.minor = 31;
      out.max_write = 4096;
      answer_fuse(device, in.unique, out);
      break;
    }
    case FUSE_GETATTR: {
      fuse_attr_out out{};
      out.attr_valid = 3600;
      out.attr.ino = 1;
      out.attr.mode = S_IFREG | 0666;
      out.attr.nlink = 1;
      answer_fuse(device, in.unique, out);
      break;
    }
    case FUSE_OPEN: answer_fuse(device, in.unique, fuse_open_out{}); break;
    case FUSE_RELEASE: refuse_fuse(device, in.unique, 0); break;
    case FUSE_FLUSH:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: break;  // no answer
    default: refuse_fuse(device, in.unique, -ENOSYS);
  }
  return true;
}

}  // namespace testing_lrpc
