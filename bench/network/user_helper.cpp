// lrpc-bench-user FD: implements a protocol for a graph in the process at the other end of socket FD. It answers each
// message with one byte, and ends with that process.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "lrpc/netrpc/user/user_process.h"

int main(int argc, char** argv) {
  using lrpc::netuser::UserProcess;
  if (argc != 2) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  UserProcess::Options options;
  options.receive = [](UserProcess& self, const UserProcess::Arrived& arrived) {
    constexpr std::array<std::byte, 1> kAnswer{};
    (void)self.push(arrived.session, kAnswer);
  };
  options.lost = [](const lrpc::Error& /*why*/) { ::_exit(0); };
  const auto process = UserProcess::create_over(lrpc::UniqueFd(std::atoi(argv[1])), options);
  if (!process || !(*process)->enable()) return 1;
  if (::write(STDOUT_FILENO, "\n", 1) != 1) return 1;
  for (;;) ::pause();
}
