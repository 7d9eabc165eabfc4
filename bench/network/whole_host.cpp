#include "whole_host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "calls/helper.h"
#include "calls/lrpc_domains.h"
#include "core/interrupt.h"
#include "core/program.h"
#include "core/store.h"

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
Result<Child> start_program(const std::vector<std::string>& command, const netrpc::test::Namespace& where,
                            const Seat& seat) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe2", errno);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  auto child = Child::spawn("bench-program", seat, [&] {
    where.run([&] { become(command, in.get(), STDERR_FILENO); });
    return 127;
  });
  if (!child) return child.error();
  in.reset();
  if (const Status ready = await_line(out.get(), command[0]); !ready) return ready.error();
  return child;
}

}  // namespace

Result<std::string> WholeHost::write_keys(const std::string& text) const {
  std::string keys = directory.file("keys");
  std::ofstream(keys) << text;
  if (::chmod(keys.c_str(), 0600) != 0) return system_error("chmod " + keys, errno);
  return keys;
}

Status WholeHost::start(const netrpc::test::Namespace& where, const Seat& seat,
                        const std::vector<std::string>& netd_options) {
  if (Status up = store(lrpcd, start_program({LRPCD, "--socket", socket(), "--log-level", "off"}, where, seat)); !up)
    return up;
  if (Status up = store(server, start_bench_server(socket(), seat)); !up) return up;
  std::vector<std::string> arguments{LRPC_NETD, "--nameserver", socket(), "--log-level", "warning"};
  arguments.insert(arguments.end(), netd_options.begin(), netd_options.end());
  return store(netd, start_program(arguments, where, seat));
}

}  // namespace lrpc::bench
