#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace lrpc::sealed {
namespace {

Error not_found(const std::string& name, int err) {
  return {Errc::invalid_argument, system_error("cannot run '" + name + "'", err).text};
}

bool is_executable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// A name with a slash as it is; otherwise the first executable of that name in $PATH.
std::string find(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::string candidate = (directory.empty() ? "." : directory) + '/' + name;
    if (is_executable(candidate)) return candidate;
  }
  return name;
}

}  // namespace

Result<UniqueFd> open_program(const std::string& name) {
  const std::string path = find(name);
  // O_NONBLOCK: a FIFO is to be refused, not waited for.
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return not_found(name, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return not_found(name, errno);
  if (!S_ISREG(status.st_mode) || access(path.c_str(), X_OK) != 0) return not_found(name, EACCES);

  ElfW(Ehdr) header{};
  const bool is_elf = pread(file.get(), &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_phentsize == sizeof(ElfW(Phdr));
  if (!is_elf)
    return Error{Errc::invalid_argument, "'" + name + "' is no program for this processor that could run sealed"};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (pread(file.get(), &segment, sizeof segment, at) != static_cast<ssize_t>(sizeof segment)) break;
    if (segment.p_type != PT_INTERP) continue;
    return Error{Errc::invalid_argument, "'" + name +
                                             "' is linked dynamically, and a sealed program cannot open its libraries: "
                                             "link it with -static-pie (lrpc_sealed_program() in CMake)"};
  }
  return file;
}

}  // namespace lrpc::sealed
