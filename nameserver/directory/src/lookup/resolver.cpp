#include "lookup/resolver.h"

#include <fcntl.h>

#include <cerrno>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::directory {

std::string forbidden_of(std::span<const char* const> files) {
  std::string text;
  for (const char* const file : files) {
    const UniqueFd opened(::open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (opened || (errno != EACCES && errno != EPERM)) continue;
    text.append(text.empty() ? "" : ", ").append(file);
  }
  return text;
}

}  // namespace lrpc::directory
