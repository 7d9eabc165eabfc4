#include "directory_sandbox.h"

#include <algorithm>
#include <iterator>

#include "lookup/resolver.h"
#include "lrpc/detail/shim/system/directory_of.h"

namespace lrpc::directory {

sandbox::Options sandbox_of_directory(const Config& config) {
  using sandbox::Group;
  // It is a server for this machine's clients, and a client of etcd. Datagrams are for the resolver.
  sandbox::Options options;
  options.groups = sandbox::server_domain();
  for (const Group one : {Group::streams, Group::datagrams, Group::read_files}) options.groups.push_back(one);
  for (const std::string& endpoint : config.server.endpoints) options.tcp_connect.push_back(port_of(endpoint));
  options.tcp_connect.push_back(53);
  // systemd-resolved replaces its files, and /etc/resolv.conf is usually a link to one: so allow their directory. Not
  // all of /etc/ssl: it contains a directory of private keys.
  options.read_only = {"/run/systemd/resolve", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/usr/lib/ssl",
                       "/usr/share/ca-certificates"};
  options.read_only.insert(options.read_only.end(), kResolverFiles.begin(), kResolverFiles.end());
  // Allow the directories: a file that is renewed by a rename is another file.
  const TlsOptions& tls = config.server.tls;
  std::ranges::move(shim::directories_of({tls.ca, tls.certificate, tls.key}), std::back_inserter(options.read_only));
  options.keep_capabilities = 0;
  return options;
}

}  // namespace lrpc::directory
