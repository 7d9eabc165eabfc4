#include "auth_stack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "lrpc/detail/shim/system/fd.h"
#include "netrpc/protocols/auth/keys.h"

namespace lrpc::bench {

AuthStack::AuthStack(std::string_view cipher) {
  const std::string path = directory_.file("keys");
  graph_ = fmt::format(
      "eth = ETH; ip = IP; vipaddr = VIPADDR over eth, ip; fragment = FRAGMENT over vipaddr;"
      "vipsize = VIPSIZE over vipaddr, fragment; auth = AUTH(keys = \"{}\", cipher = \"{}\") over vipsize;"
      "channel = CHANNEL over auth; top = SELECT over channel;",
      path, cipher);
  written_ = write_key(path);
}

Status AuthStack::write_key(const std::string& path) const {
  if (!directory_.made()) return Error{Errc::system_error, "cannot make a directory for the keys"};
  const std::string line = "* " + netrpc::auth::generate_key() + "\n";
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot write " + path, errno);
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return system_error("cannot write " + path, errno);
  return {};
}

}  // namespace lrpc::bench
