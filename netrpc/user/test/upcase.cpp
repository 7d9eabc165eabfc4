// netuser-test-upcase FD: a user process that is a protocol of the graph at the other end of the socket FD. It answers
// each message with its text in capitals, and exits when the graph ends.
#include <ctype.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "lrpc/netrpc/user/user_process.h"

using lrpc::netuser::UserProcess;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::mutex mutex;
  std::condition_variable lost;
  bool over = false;
  UserProcess::Options options;
  options.receive = [](UserProcess& self, const UserProcess::Arrived& arrived) {
    std::vector<std::byte> answer(arrived.message.begin(), arrived.message.end());
    for (std::byte& one : answer) one = static_cast<std::byte>(::toupper(std::to_integer<int>(one)));
    (void)self.push(arrived.session, answer);
  };
  options.lost = [&](const lrpc::Error& /*why*/) {
    const std::lock_guard lock(mutex);
    over = true;
    lost.notify_one();
  };
  const auto process = UserProcess::create_over(lrpc::UniqueFd(std::atoi(argv[1])), options);
  if (!process || !(*process)->enable()) return 1;
  std::puts("is a protocol");
  std::fflush(stdout);
  std::unique_lock lock(mutex);
  lost.wait(lock, [&] { return over; });
  return 0;
}
