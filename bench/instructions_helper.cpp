// lrpc-bench-instructions TEST COUNT: makes COUNT calls with both halves in one thread, in one function whose
// instructions callgrind counts (--toggle-collect). `lrpc-bench instructions` runs it twice and takes the difference.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "bench_loopback.h"
#include "plain_procedures.h"

namespace {

using namespace lrpc::bench;

volatile bool failed = false;

template <class Call>
void repeat(unsigned long count, Call&& call) {
  for (unsigned long i = 0; i < count; ++i) {
    if (!call()) failed = true;
    asm volatile("" : : : "memory");  // so that even an empty loop is one
  }
}

}  // namespace

// The name that is given to --toggle-collect: no mangling, never inlined.
extern "C" [[gnu::noinline]] void lrpc_bench_counted(std::string_view test, unsigned long count,
                                                     ::Bench::Client& client);
void lrpc_bench_counted(std::string_view test, unsigned long count, ::Bench::Client& client) {
  if (test == "loop") {
    repeat(count, [] { return true; });
  } else if (test == "plain") {
    repeat(count, [] {
      plain_null();
      return true;
    });
  } else if (test == "Null") {
    repeat(count, [&] { return client.Null().has_value(); });
  } else if (test == "Add") {
    repeat(count, [&] { return client.Add(20, 22).has_value(); });
  } else {
    failed = true;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: lrpc-bench-instructions loop|plain|Null|Add COUNT\n");
    return 2;
  }
  auto loopback = make_bench_loopback();
  if (!loopback) {
    fmt::print(stderr, "lrpc-bench-instructions: {}\n", loopback.error().message());
    return 1;
  }
  // Whatever only the first calls do is done here, where nobody counts.
  for (int i = 0; i < 100; ++i) {
    if (!(*loopback)->client().Null() || !(*loopback)->client().Add(20, 22)) return 1;
  }
  lrpc_bench_counted(argv[1], std::strtoul(argv[2], nullptr, 10), (*loopback)->client());
  return failed ? 1 : 0;
}
