#include "remote_hosts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "calls/helper.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"

namespace lrpc::bench {
namespace {

/// Waits until a program has written a line to its standard output, as lrpcd and lrpc-netd do when they are ready.
Status await_line(int fd, const std::string& program) {
  const timespec limit{10, 0};
  const sigset_t mask = mask_in_waits();
  for (char c = 0; c != '\n';) {
    pollfd readable{fd, POLLIN, 0};
    if (::ppoll(&readable, 1, &limit, &mask) != 1) {
      if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
      return Error{Errc::timed_out, program + " did not become ready within 10 s"};
    }
    if (::read(fd, &c, 1) != 1) return Error{Errc::peer_gone, program + " ended: see above"};
  }
  return {};
}

/// Starts a program in a namespace and waits until it is ready.
Result<Child> start_program(std::vector<std::string> arguments, const netrpc::test::Namespace& where,
                            const Seat& seat) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  auto child = Child::spawn("bench-program", seat, [&] {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::dup2(in.get(), STDOUT_FILENO);
    where.run([&] { ::execv(argv[0], argv.data()); });
    return 127;
  });
  if (!child) return child.error();
  in.reset();
  if (const Status ready = await_line(out.get(), arguments[0]); !ready) return ready.error();
  return child;
}

}  // namespace

Status RemoteHosts::start_end(End& end, const netrpc::test::Namespace& where, const Seat& seat, const RemotePath& path,
                              const std::string& key_of_other, bool exports) {
  const std::string socket = end.directory.file("lrpcd.sock");
  auto lrpcd = start_program({LRPCD, "--socket", socket, "--log-level", "off"}, where, seat);
  if (!lrpcd) return lrpcd.error();
  end.lrpcd = std::move(*lrpcd);
  auto server = start_bench_server(socket, seat);
  if (!server) return server.error();
  end.server = std::move(*server);

  std::vector<std::string> netd{LRPC_NETD, "--nameserver", socket, "--interface", "wire", "--log-level", "warning"};
  if (path.udp) netd.push_back("--udp");
  if (path.authenticated) {
    const std::string keys = end.directory.file("keys");
    std::ofstream(keys) << key_of_other;
    if (::chmod(keys.c_str(), 0600) != 0) return system_error("chmod " + keys, errno);
    netd.insert(netd.end(), {"--keys", keys});
  } else {
    netd.push_back("--insecure");
  }
  if (exports) netd.insert(netd.end(), {"--export", LrpcDomains::kExportedName});
  auto started = start_program(std::move(netd), where, seat);
  if (!started) return started.error();
  end.netd = std::move(*started);
  return {};
}

Status RemoteHosts::start_bare(const Seats& seats, SocketKind kind) {
  std::optional<BareSocket> answers;
  Status done;
  const auto open = [&](std::optional<BareSocket>& socket, const netrpc::test::Namespace& where,
                        netrpc::HostAddress local, netrpc::HostAddress peer) {
    where.run([&] {
      auto opened = BareSocket::open(kind, "wire", local, peer);
      if (opened) {
        socket.emplace(std::move(*opened));
      } else {
        done = opened.error();
      }
    });
  };
  open(answers, wire_.server, Wire::kServer, Wire::kClient);
  if (done) open(bare_, wire_.client, Wire::kClient, Wire::kServer);
  if (done) done = bare_->connect();
  if (!done) return done;
  // A process, not a thread: the servers of the calls have address spaces of their own, too.
  auto echo = Child::spawn("bench-echo", seats.server, [&] {
    answers->echo();
    return 0;
  });
  if (!echo) return echo.error();
  echo_ = std::move(*echo);
  return {};
}

Result<std::unique_ptr<RemoteHosts>> RemoteHosts::start(const Seats& seats, const RemotePath& path) {
  std::unique_ptr<RemoteHosts> self(new RemoteHosts);
  std::string key;
  if (path.authenticated) {
    auto made = run_program({LRPC_NETD, "--generate-key"}, std::chrono::seconds(10));
    if (!made) return made.error();
    key = *made;
  }
  if (Status up = self->start_end(self->there_, self->wire_.server, seats.server, path, "10.0.0.1 " + key, true); !up)
    return up.error();
  if (Status up = self->start_end(self->here_, self->wire_.client, seats.client, path, "10.0.0.2 " + key, false); !up)
    return up.error();
  if (Status up = self->start_bare(seats, path.udp ? SocketKind::udp : SocketKind::packet); !up) return up.error();
  return self;
}

ImportOptions RemoteHosts::import_options() const {
  ImportOptions options;
  options.nameserver = here_.directory.file("lrpcd.sock");
  options.timeout = std::chrono::seconds(5);
  return options;
}

}  // namespace lrpc::bench
