#include "confined_directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace files {
namespace {

/// The permission bits that a client may set: no set-user-id, set-group-id or sticky bit.
constexpr mode_t kPermissions = 0777;

}  // namespace

lrpc::Result<ConfinedDirectory> ConfinedDirectory::open(const std::string& path) {
  lrpc::UniqueFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return lrpc::system_error(path, errno);
  return ConfinedDirectory(std::move(root));
}

ConfinedDirectory::Opened ConfinedDirectory::open_beneath(std::string_view path, int flags, mode_t permissions) const {
  const std::string name(path.empty() ? "." : path);
  if (name.find('\0') != std::string::npos) return {{}, EINVAL};
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  if ((flags & O_CREAT) != 0) how.mode = permissions & kPermissions;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  do {
    fd = syscall(SYS_openat2, root_.get(), name.c_str(), &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));  // EAGAIN: a rename raced with ".." (openat2(2))
  if (fd < 0) return {{}, errno};
  return {lrpc::UniqueFd(static_cast<int>(fd)), 0};
}

int ConfinedDirectory::make_directory(std::string_view path) const {
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const auto slash = path.rfind('/');
  const std::string_view parent = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  const std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos) return EINVAL;
  const Opened directory = open_beneath(parent, O_PATH | O_DIRECTORY);
  if (!directory.fd) return directory.error_number;
  return mkdirat(directory.fd.get(), name.c_str(), kPermissions) == 0 ? 0 : errno;
}

int ConfinedDirectory::stat(std::string_view path, struct stat& status) const {
  const Opened opened = open_beneath(path, O_PATH);
  if (!opened.fd) return opened.error_number;
  return fstat(opened.fd.get(), &status) == 0 ? 0 : errno;
}

}  // namespace files
