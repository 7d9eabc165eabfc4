#include "daemon_sandbox.h"

#include "lrpc/detail/shim/system/directory_of.h"

namespace lrpc::netd {

sandbox::Options sandbox_of_daemon(const std::vector<std::string>& key_files, const std::string& state_file,
                                   const std::vector<std::uint16_t>& tcp_ports) {
  using sandbox::Group;
  // It is a server of this machine's clients and a client of its servers.
  sandbox::Options options;
  options.groups = sandbox::server_domain();
  options.groups.push_back(Group::rings);
  // To ask for routes, to have the kernel look for neighbours, and to bind open sockets to a link that was made again.
  options.groups.push_back(Group::datagrams);
  options.read_only = shim::directories_of(key_files);
  if (!state_file.empty()) {
    options.groups.push_back(Group::write_files);
    options.read_write.push_back(state_file);
  }
  if (!tcp_ports.empty()) {
    options.groups.push_back(Group::streams);
    options.tcp_connect = tcp_ports;
    options.tcp_bind = {0};  // whichever the kernel picks: a graph's TCP may name the address to connect from
  }
  options.keep_capabilities = 0;
  return options;
}

}  // namespace lrpc::netd
