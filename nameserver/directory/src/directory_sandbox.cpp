#include "directory_sandbox.h"

#include <utility>

#include "lrpc/shim/system/directory_of.h"
#include "resolver.h"

namespace lrpc::directory {

sandbox::Options sandbox_of_directory(const Config& config) {
  using sandbox::Group;
  // A server of this machine's clients, and a client of etcd.
  sandbox::Options options;
  options.groups = sandbox::server_domain();
  options.groups.push_back(Group::streams);
  options.groups.push_back(Group::datagrams);  // the resolver's
  options.groups.push_back(Group::read_files);
  for (const std::string& endpoint : config.server.endpoints) options.tcp_connect.push_back(port_of(endpoint));
  options.tcp_connect.push_back(53);
  // systemd-resolved puts other files in the place of its own, to one of which /etc/resolv.conf is most often a link.
  // Not all of /etc/ssl: it has a directory of private keys.
  options.read_only = {"/run/systemd/resolve", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/usr/lib/ssl",
                       "/usr/share/ca-certificates"};
  options.read_only.insert(options.read_only.end(), kResolverFiles.begin(), kResolverFiles.end());
  // Directories: files that are renewed by a rename are other files.
  for (const std::string& file : {config.server.tls.ca, config.server.tls.certificate, config.server.tls.key}) {
    if (file.empty()) continue;
    for (std::string& directory : shim::directories_of(file)) options.read_only.push_back(std::move(directory));
  }
  options.keep_capabilities = 0;
  return options;
}

}  // namespace lrpc::directory
