#include "daemon_sandbox.h"

namespace lrpc::nameserver {

sandbox::Options sandbox_of_daemon(const std::string& socket_path) {
  using sandbox::Group;
  sandbox::Options options;
  // No sockets: whoever wants something connects to it. No threads: it is one. Rings: the loop's, restricted to polls.
  options.groups = {Group::descriptors, Group::messages,     Group::shared_memory, Group::peers,
                    Group::read_files,  Group::remove_files, Group::rings};
  // At its end it removes its socket, if that is still its own.
  const std::size_t slash = socket_path.rfind('/');
  options.removable_in = {slash == std::string::npos ? "." : slash == 0 ? "/" : socket_path.substr(0, slash)};
  options.keep_capabilities = 0;
  return options;
}

}  // namespace lrpc::nameserver
