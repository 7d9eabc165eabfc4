#include "remote_hosts.h"

#include <chrono>
#include <utility>
#include <vector>

#include "calls/lrpc_domains.h"
#include "core/program.h"
#include "core/store.h"

namespace lrpc::bench {
Status RemoteHosts::start_end(WholeHost& end, const netrpc::test::Namespace& where, const Seat& seat,
                              const RemotePath& path, const std::string& key_of_other, bool exports) {
  std::vector<std::string> options{"--interface", "wire"};
  if (path.udp) options.push_back("--udp");
  if (path.authenticated) {
    const auto keys = end.write_keys(key_of_other);
    if (!keys) return keys.error();
    options.insert(options.end(), {"--keys", *keys});
  } else {
    options.push_back("--insecure");
  }
  if (exports) options.insert(options.end(), {"--export", LrpcDomains::kExportedName});
  return end.start(where, seat, options);
}

Status RemoteHosts::start_bare(const Seats& seats, SocketKind kind) {
  auto answers = wire_.open_server(kind);
  if (!answers) return answers.error();
  auto asks = wire_.open_client(kind);
  if (!asks) return asks.error();
  bare_.emplace(*std::move(asks));
  // A process instead of a thread: the servers of the calls have their own address spaces, too.
  const auto answer = [&] {
    answers->echo();
    return 0;
  };
  return store(echo_, Child::spawn("bench-echo", seats.server, answer));
}

Result<std::unique_ptr<RemoteHosts>> RemoteHosts::start(const Seats& seats, const RemotePath& path) {
  std::unique_ptr<RemoteHosts> self(new RemoteHosts);
  std::string key;
  if (path.authenticated) {
    const Status made = store(key, run_program({LRPC_NETD, "--generate-key"}, std::chrono::seconds(10)));
    if (!made) return made.error();
  }
  if (Status up = self->start_end(self->there_, self->wire_.server, seats.server, path, "10.0.0.1 " + key, true); !up)
    return up.error();
  if (Status up = self->start_end(self->here_, self->wire_.client, seats.client, path, "10.0.0.2 " + key, false); !up)
    return up.error();
  if (Status up = self->start_bare(seats, path.udp ? SocketKind::udp : SocketKind::packet); !up) return up.error();
  return self;
}

ImportOptions RemoteHosts::import_options() const {
  return {.nameserver = here_.socket(), .timeout = std::chrono::seconds(5)};
}

}  // namespace lrpc::bench
