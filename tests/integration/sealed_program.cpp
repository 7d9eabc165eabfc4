// The program that the trap tests run sealed. The first argument chooses one behaviour. Exit status 0: all as expected.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "conformance.client.h"
#include "lrpc/detail/client/call/call.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/trap/trap.h"

namespace {

using lrpc::Errc;

int failures = 0;

void expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "sealed program: not so: %s\n", what);
  ++failures;
}
#define EXPECT(...) expect(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__)

Conformance::Client import_or_exit(const char* name) {
  auto client = Conformance::Client::import(name);
  if (!client) {
    std::fprintf(stderr, "sealed program: %s\n", client.error().message().c_str());
    std::exit(10);
  }
  return *std::move(client);
}

void arguments_and_results(Conformance::Client& client) {
  EXPECT(client.Null());
  for (int i = 0; i < 1000; ++i) EXPECT(client.Add(i, 2 * i).value() == 3 * i);
  std::array<std::byte, 200> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  auto reversed = data;
  EXPECT(client.BigInOut(reversed));
  std::ranges::reverse(reversed);
  EXPECT(reversed == data);
  EXPECT(client.Greet("sealed").value().str() == "hello, sealed");
  std::vector<std::byte> big(1'000'000, std::byte{3});  // longer than the image: goes through the tail
  EXPECT(client.Sum(big).value() == 3'000'000);
  EXPECT(client.Check(101).code() == Errc::raised);
  EXPECT(client.Throw().code() == Errc::exception_escaped);
  const auto counter = client.Open(40);
  EXPECT(counter.has_value() && client.Advance(*counter, 2).value() == 42);
  EXPECT(client.NapFor(30));
  const auto caller = client.Caller();
  EXPECT(caller.has_value() && caller->pid == getpid() && caller->uid == getuid());
  const auto server = client.binding().server();
  EXPECT(server.pid > 0 && server.uid == getuid());
}

/// So little that it can be repeated often.
void something_of_each_kind(Conformance::Client& client) {
  const auto sum = client.Add(20, 22);
  EXPECT(sum && *sum == 42);
  const std::vector<std::byte> big(100'000, std::byte{3});
  const auto total = client.Sum(big);
  EXPECT(total && *total == 300'000);
  EXPECT(client.Check(101).code() == Errc::raised);
  EXPECT(client.Throw().code() == Errc::exception_escaped);
  EXPECT(client.Open(40));
  EXPECT(client.NapFor(1));
}

void what_is_refused(Conformance::Client& client) {
  const auto refused = [](long result) { return result == -1 && errno == EPERM; };
  EXPECT(refused(open("/etc/passwd", O_RDONLY)));
  EXPECT(refused(socket(AF_UNIX, SOCK_STREAM, 0)));
  EXPECT(refused(fork()));
  io_uring_params parameters{};
  EXPECT(refused(syscall(SYS_io_uring_setup, 8, &parameters)));
  EXPECT(refused(kill(getppid(), 0)));
  EXPECT(refused(execl("/bin/true", "true", nullptr)));
  EXPECT(refused(syscall(SYS_execveat, 4, "", nullptr, nullptr, AT_EMPTY_PATH)));
  EXPECT(refused(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)));
  EXPECT(refused(dup(1)));
  EXPECT(refused(static_cast<long>(syscall(SYS_memfd_create, "x", 0))));
  EXPECT(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
  EXPECT(refused(syscall(12345)));
  EXPECT(client.Add(20, 22).value() == 42);
}

/// System calls that no kernel has: each number is a new name to the code that reports refusals.
void made_up_numbers() {
  for (long number = 100'000; number < 120'000; ++number) EXPECT(syscall(number) == -1 && errno == EPERM);
}

/// 1: with this limit the kernel starts no core handler either (core(5)).
void core_limit() {
  rlimit limit{};
  EXPECT(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 1 && limit.rlim_max == 1);
}

/// Another region needs a descriptor and a mapping, which a sealed domain cannot take. Asking for it is refused without
/// harm.
void growth(const char* name) {
  const auto growing = Conformance::Client::import(name, {.supply = lrpc::AStackSupply::grow});
  EXPECT(growing.code() == Errc::not_supported);
  EXPECT(growing.error().message().find("AStackSupply::grow") != std::string::npos);
}

volatile sig_atomic_t signals_seen = 0;
void count_signal(int) { signals_seen = signals_seen + 1; }

/// Calls while the test sends thousands of signals. `restart`: the kernel restarts interrupted system calls.
void count_under_signals(Conformance::Client& client, bool restart) {
  struct sigaction action {};
  action.sa_handler = count_signal;
  action.sa_flags = restart ? SA_RESTART : 0;
  sigaction(SIGUSR1, &action, nullptr);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) std::exit(11);
  const std::uint64_t before = client.Count().value();
  constexpr std::uint64_t kCalls = 30'000;
  for (std::uint64_t i = 1; i <= kCalls; ++i) {
    EXPECT(client.Count().value() == before + i);
    if (i % 300 == 0) EXPECT(client.NapFor(3));
    if (failures > 3) return;
  }
  EXPECT(signals_seen > 50);
}

void registers_full_of_garbage(Conformance::Client& client) {
  std::mt19937_64 random(4711);
  const auto binding = lrpc::shim::in_registers(lrpc::detail::StubAccess::object(client.binding()).nonce());
  for (int i = 0; i < 20'000; ++i) {
    lrpc::shim::TrapRegisters registers{{random(), random()}, random(), random(), random()};
    if (i % 2 == 0) registers.binding = binding;
    if (i % 4 == 0) registers.astack = random() % 64;
    if (i % 8 == 0) registers.generation = random() % 3;
    if (i % 16 == 0) registers.procedure = random() % 8;
    (void)lrpc::shim::trap(registers);
  }
  // None of that was a call, so calls continue as before.
  EXPECT(client.Add(20, 22).value() == 42);
}

/// Procedures that do harm if called correctly.
bool obeys_too_well(std::uint64_t procedure) {
  if (procedure >= Conformance::kPdl.procedures.size()) return false;
  const std::string_view name = Conformance::kPdl.procedures[procedure].name;
  return name == "Die" || name == "SleepFor" || name == "NapFor" || name == "Through";
}

/// Writes random call words, hints and images, punches holes, and makes traps that do or do not match them. One seed
/// gives one run. Some of it is a call, so this binding is useless afterwards.
void region_full_of_garbage(Conformance::Client& client, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto nonce = lrpc::shim::in_registers(lrpc::detail::StubAccess::object(client.binding()).nonce());
  const auto layout = lrpc::shim::RegionLayout::of(Conformance::kPdl.classes);
  EXPECT(layout);
  if (!layout) return;
  constexpr std::uintptr_t kPage = 4096;
  std::byte* base = nullptr;
  {
    // The A-stacks of the first class are small, and are at the start of the region's first page.
    const lrpc::client::Call call(lrpc::detail::StubAccess::object(client.binding()), 0);
    base = call.image() - reinterpret_cast<std::uintptr_t>(call.image()) % kPage;
  }
  const auto store = [](std::byte* at, std::uint64_t bits) {
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)).store(bits);
  };
  std::vector<std::uint64_t> next(layout->astack_count(), 1);  // generations
  std::uint64_t answered = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t number = random() % layout->astack_count();
    const auto placed = std::ranges::find_if(layout->classes(), [&](const auto& one) {
      return number < one.first_astack + std::uint64_t{one.declared.count};
    });
    std::byte* const slot = base + placed->slots_offset + (number - placed->first_astack) * placed->slot_stride;
    for (std::uint64_t words = random() % 8; words > 0; --words)
      store(slot + 16 + random() % (placed->slot_stride / 8 - 2) * 8, random() % 2 == 0 ? random() : random() % 300);
    if (random() % 4 == 0) store(slot + 8, random());  // the hints
    if (random() % 64 == 0) madvise(base + random() % 4 * kPage, kPage, MADV_REMOVE);
    const std::uint64_t generation = next[number] + (random() % 8 == 0 ? random() % 4 : 0);
    const std::uint64_t procedure = random() % (Conformance::kPdl.procedures.size() + 1);
    if (obeys_too_well(procedure)) continue;
    const bool agrees = random() % 4 != 0;
    store(slot, agrees ? lrpc::shim::CallWord::called(generation, static_cast<std::uint16_t>(procedure), 0).bits()
                       : random() & ~(std::uint64_t{0xffff} << 32));
    const std::uint64_t named = random() % 32 == 0 ? random() : number;
    if (lrpc::shim::trap({nonce, procedure, named, generation}) != 0) continue;
    ++next[number];
    ++answered;
  }
  EXPECT(answered > 1000);
}

void the_server_dies(Conformance::Client& client) {
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) std::exit(11);
  EXPECT(client.SleepFor(60'000).code() == Errc::call_failed);
  EXPECT(client.Null().code() == Errc::binding_revoked);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view what = argv[1];
  if (what == "status") return std::atoi(argv[2]);
  if (what == "variable") {  // NAME [VALUE]: must be set to VALUE; without VALUE: must not be set
    const char* const value = std::getenv(argv[2]);
    return argc > 3 ? value == nullptr || std::string_view(value) != argv[3] : value != nullptr;
  }
  if (what == "another-name") {
    const auto other = Conformance::Client::import(argv[2]);
    std::fprintf(stderr, "%s\n", other.error().message().c_str());
    if (other.code() != Errc::name_unknown || argc < 4) return 1;
    return import_or_exit(argv[3]).Null() ? 0 : 1;
  }
  if (what == "grow") growth(argv[2]);
  auto client = import_or_exit(argv[2]);
  if (what == "call" || what == "grow")
    arguments_and_results(client);
  else if (what == "exchange")
    something_of_each_kind(client);
  else if (what == "refused")
    what_is_refused(client);
  else if (what == "storm")
    count_under_signals(client, false);
  else if (what == "storm-restarted")
    count_under_signals(client, true);
  else if (what == "garbage")
    registers_full_of_garbage(client);
  else if (what == "region" && argc > 3)
    region_full_of_garbage(client, std::strtoull(argv[3], nullptr, 10));
  else if (what == "server-dies")
    the_server_dies(client);
  else if (what == "made-up")
    made_up_numbers();
  else if (what == "core-limit")
    core_limit();
  else if (what == "abort")
    std::abort();
  else if (what == "loop")
    for (;;) EXPECT(client.Null());
  else
    return 2;
  EXPECT(Conformance::Client::import(argv[2]).code() == Errc::limit_reached);  // a sealed process has one binding
  return failures == 0 ? 0 : 1;
}
