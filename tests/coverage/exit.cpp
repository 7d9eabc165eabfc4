// Linked into every program of `./do coverage`: a process that ends by _exit(2), as children of fork do in tests, keeps
// what it has counted, and so does one that a test ends (Process in tests/integration/world.h).
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void __gcov_dump();  // NOLINT: not our name

[[noreturn]] void _exit(int status) {
  __gcov_dump();
  for (;;) ::syscall(SYS_exit_group, status);
}
[[noreturn]] void _Exit(int status) { _exit(status); }  // NOLINT: not our name
}

namespace {

[[gnu::constructor]] void end_when_told() {
  ::signal(LRPC_COUNTING_ENDS, [](int) { _exit(0); });
}

}  // namespace
