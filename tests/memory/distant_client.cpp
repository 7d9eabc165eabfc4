// A client of another host, or of a group, whose allocations fail during its calls. It controls that itself:
// lrpc-distant-client NAMESERVER NAME@HOST HOST|GROUP. A life is good if each call had the result that it must have.
#include <sys/prctl.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "allocation_faults.h"
#include "distant.client.h"
#include "own_faults.h"

namespace {

using lrpc::Errc;
using testing_lrpc::AllocationFaults;

constexpr const char* kCalls = "makes a call";  ///< This thread's name during calls: allocations fail only then.

/// Repeats `call`; each time the next allocation of this thread fails, until the call makes no more. True if the result
/// was `lacking` each time, and success in the end.
template <class Call>
bool comes_to(AllocationFaults& faults, Errc lacking, const Call& call) {
  for (std::uint64_t number = 1;; ++number) {
    const std::uint64_t before = faults.failed.load();
    faults.count.store(0);
    faults.last.store(number);
    faults.first.store(number);
    prctl(PR_SET_NAME, kCalls);
    const Errc code = call();
    prctl(PR_SET_NAME, "rests");
    faults.first.store(0);
    const bool failed = faults.failed.load() != before;
    if (!failed) return number > 1 && code == Errc::ok;
    if (code != lacking) return false;
  }
}

/// `call` is the first one on a new binding to `name`: its A-stack has no buffers yet.
template <class Call>
bool comes_to_at_first(AllocationFaults& faults, const std::string& nameserver, const std::string& name, Errc lacking,
                       const Call& call) {
  auto client = Distant::Client::import(name, {.nameserver = nameserver});
  return client && comes_to(faults, lacking, [&] { return call(*client); });
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  AllocationFaults* const faults = testing_lrpc::map_own_faults();
  if (argc != 4 || faults == nullptr) return 64;
  std::strncpy(faults->thread, kCalls, sizeof faults->thread - 1);
  const std::string nameserver = argv[1];
  const std::string name = argv[2];
  const bool to_group = std::string_view(argv[3]) == "GROUP";
  const auto try_each = [&](Errc lacking, const auto& call) {
    return comes_to_at_first(*faults, nameserver, name, lacking, call);
  };
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    const bool good =
        to_group ? try_each(Errc::system_error, [](Distant::Client& client) { return client.all().Add(1, 2).code(); })
                 : try_each(Errc::call_failed, [](Distant::Client& client) { return client.Add(1, 2).code(); }) &&
                       try_each(Errc::call_failed, [](Distant::Client& client) { return client.Tell(3).code(); }) &&
                       try_each(Errc::call_failed,
                                [](Distant::Client& client) { return client.start().Add(1, 2).finish().code(); });
    if (good) faults->good.fetch_add(1);
    faults->lives.fetch_add(1);
  }
}
