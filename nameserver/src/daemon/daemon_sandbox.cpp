#include "daemon_sandbox.h"

#include <sys/socket.h>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/directory_of.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver {

sandbox::Options sandbox_of_daemon(const std::string& socket_path) {
  using sandbox::Group;
  sandbox::Options options;
  // No new sockets: clients connect to the daemon. Rings: the loop's, restricted to polls.
  options.groups = {Group::descriptors, Group::messages,     Group::shared_memory, Group::peers,
                    Group::read_files,  Group::remove_files, Group::rings};
  // No threads, except if peers can send descriptors, which other threads must close (shim::PeerSocket).
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!shim::refuse_descriptors(socket.get())) options.groups.push_back(Group::threads);
  // At its end it removes its socket, if that is still its own.
  options.removable_in = {shim::directory_of(socket_path)};
  options.keep_capabilities = 0;
  return options;
}

}  // namespace lrpc::nameserver
