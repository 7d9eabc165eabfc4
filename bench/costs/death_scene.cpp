#include "death_scene.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "core/child.h"
#include "core/interrupt.h"
#include "core/ticks.h"
#include "death.client.h"
#include "death.server.h"
#include "lrpc/sealed.h"

namespace lrpc::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{10'000};
constexpr int kWarmUpCalls = 50;
constexpr milliseconds kQuiet{2};  ///< Between the last preparation and the death.

/// CLOCK_MONOTONIC is one clock for the whole machine, so the readings of different processes can be compared.
std::int64_t now() noexcept { return static_cast<std::int64_t>(clock_ns(CLOCK_MONOTONIC)); }

/// What the bench and the two domains share.
struct Scene {
  std::atomic<bool> server_ready;
  std::atomic<bool> client_ready;
  std::atomic<bool> held;           ///< The server is executing the call.
  std::atomic<pid_t> holder;        ///< The process that holds the dead domain's sockets.
  std::atomic<int> bindings_told;   ///< How many bindings' `when_revoked` has been called.
  std::atomic<std::int64_t> since;  ///< When the surviving process saw the report itself, if it measures from there.
  std::atomic<std::int64_t> heard;
  SharedError failure;
};

bool client_dies(Hears hears) noexcept { return hears == Hears::unbound || hears == Hears::unbound_calls; }

/// The signals for which the main thread of a domain waits; the other threads must block them. SIGUSR1 tells the domain
/// to end itself, SIGUSR2 to leave a holder of its sockets behind and to wait for SIGKILL.
sigset_t cues() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  return set;
}

/// Makes a child of the bench, not of this process, that holds all descriptors of this process. A bare clone(2) runs no
/// fork handler, so nothing in this process notices.
pid_t leave_a_holder_behind() noexcept {
  const long pid = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid != 0) return static_cast<pid_t>(pid);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::pause();
}

/// Waits for a cue and ends the process in the given way. Never returns; in order to die by SIGKILL, it just waits.
[[noreturn]] void wait_for_the_end(Scene& scene, Way way) noexcept {
  const sigset_t set = cues();
  int cue = 0;
  while (::sigwait(&set, &cue) != 0) {
  }
  if (cue == SIGUSR2) {
    scene.holder.store(leave_a_holder_behind(), std::memory_order_release);
    for (;;) ::pause();
  }
  if (way == Way::crash) {
    void* const nobodys = ::mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile char*>(nobodys) = 1;
  }
  ::_exit(0);
}

void prepare_to_end() noexcept {
  const sigset_t set = cues();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

struct DyingProcedures {
  Scene& scene;
  void Null(CallContext& /*context*/) noexcept {}
  void Hold(CallContext& context) noexcept {
    scene.held.store(true, std::memory_order_release);
    while (!context.abandoned()) std::this_thread::sleep_for(milliseconds(5));
  }
};

/// Returns only if it fails.
Status be_server(const std::string& nameserver, const std::string& name, const Act& act, Scene& scene) {
  prepare_to_end();
  DyingProcedures procedures{scene};
  Server server({.nameserver = nameserver});
  ExportOptions exported_as;
  if (client_dies(act.hears))
    exported_as.on_unbound = [&](std::uint64_t) { scene.heard.store(now(), std::memory_order_release); };
  if (auto exported = ::DeathBench::export_to(server, name, procedures, exported_as); !exported)
    return exported.error();
  scene.server_ready.store(true, std::memory_order_release);
  wait_for_the_end(scene, act.way);
}

/// The client's part once it is bound. The call that the death meets must end with call_failed.
template <class Import>
Status play_client(::DeathBench::Client& client, const Act& act, int server, Scene& scene, Import&& import) {
  for (int i = 0; i < kWarmUpCalls; ++i)
    if (auto called = client.Null(); !called) return called.error();
  Errc end = Errc::ok;
  const auto ready = [&] { scene.client_ready.store(true, std::memory_order_release); };
  switch (act.hears) {
    case Hears::call:
      ready();
      end = client.Hold().code();
      break;
    case Hears::started_call: {
      auto pending = client.start().Hold();
      ready();
      end = pending.finish().code();
      break;
    }
    case Hears::next_call: {
      ready();
      pollfd ended{server, POLLIN, 0};
      while (::poll(&ended, 1, -1) != 1) {
      }
      scene.since.store(now(), std::memory_order_relaxed);
      end = client.Null().code();
      if (end == Errc::binding_revoked) end = Errc::call_failed;  // the watcher was faster than the call
      break;
    }
    case Hears::last_binding: {
      std::vector<::DeathBench::Client> others;  // the one watcher thread revokes them and `client`, one after another
      const auto told = [&scene] {
        if (++scene.bindings_told == kManyBindings) scene.heard.store(now(), std::memory_order_release);
      };
      while (others.size() + 1 < kManyBindings) {
        auto other = import();
        if (!other) return other.error();
        if (auto watched = other->binding().when_revoked(told); !watched) return watched.error();
        others.push_back(*std::move(other));
      }
      if (auto watched = client.binding().when_revoked(told); !watched) return watched.error();
      ready();
      while (scene.heard == 0) std::this_thread::sleep_for(kQuiet);
      return {};
    }
    case Hears::unbound_calls: {
      std::thread([&] { (void)client.Hold(); }).detach();
      [[fallthrough]];
    }
    default: ready(); wait_for_the_end(scene, act.way);
  }
  scene.heard.store(now(), std::memory_order_release);
  if (end != Errc::call_failed) return Error{end, "the call had not call_failed: " + std::string(describe(end))};
  return {};
}

Status be_client(const ImportOptions& options, const std::string& name, const Act& act, pid_t server, Scene& scene) {
  prepare_to_end();
  auto pidfd = shim::open_pidfd(server);
  if (!pidfd) return pidfd.error();
  if (act.hears == Hears::poll) {
    pollfd ended{pidfd->get(), POLLIN, 0};
    scene.client_ready.store(true, std::memory_order_release);
    while (::poll(&ended, 1, -1) != 1) {
    }
    scene.heard.store(now(), std::memory_order_release);
    return {};
  }
  const auto import = [&] { return ::DeathBench::Client::import(name, options); };
  auto client = import();
  if (!client) return client.error();
  if (act.gate == Gate::trap)
    if (Status sealed = seal(client->binding(), {.allow = {"poll", "ppoll"}}); !sealed) return sealed;
  return play_client(*client, act, pidfd->get(), scene, import);
}

/// Records the outcome of a domain's part. Returns the exit status of its process.
int end_of(std::string_view who, const Status& played, Scene& scene) {
  if (played) return 0;
  scene.failure.set({played.code(), fmt::format("{}: {}", who, played.error().message())});
  return 1;
}

/// Called by the bench: waits until `said()` is true, at most kPatience.
template <class Said>
Status await(const Scene& scene, Said&& said, std::string_view what) {
  const auto start = std::chrono::steady_clock::now();
  while (!said()) {
    if (Status ok = scene.failure.status(); !ok) return ok;
    if (interrupted()) return Error{Errc::call_aborted, "interrupted"};
    if (std::chrono::steady_clock::now() - start > kPatience)
      return Error{Errc::timed_out, fmt::format("{} within {} s", what, kPatience / std::chrono::seconds(1))};
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return {};
}

/// Kills and reaps the process that holds the sockets.
struct Holder {
  pid_t pid = 0;
  ~Holder() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
};

Result<Heard> end(Scene& scene, const Act& act, pid_t pid) {
  Holder holder;
  if (act.way == Way::kill_held) {
    ::kill(pid, SIGUSR2);
    const auto held = [&] { return scene.holder != 0; };
    if (auto there = await(scene, held, "nobody held the sockets"); !there) return there.error();
    holder.pid = scene.holder;
    if (holder.pid < 0) return Error{Errc::system_error, "clone"};
  }
  auto pidfd = shim::open_pidfd(pid);
  if (!pidfd) return pidfd.error();
  interruptible_sleep(kQuiet);
  pollfd ended{pidfd->get(), POLLIN, 0};
  const std::int64_t signalled = now();
  ::kill(pid, act.way == Way::exit || act.way == Way::crash ? SIGUSR1 : SIGKILL);
  const int told = ::poll(&ended, 1, static_cast<int>(kPatience.count()));
  const std::int64_t reported = now();
  if (told != 1) return Error{Errc::timed_out, "the kernel did not report the death"};
  const auto is_heard = [&] { return scene.heard != 0; };
  if (auto heard = await(scene, is_heard, "nobody heard of the death"); !heard) return heard.error();
  const std::int64_t since = scene.since != 0 ? scene.since.load() : reported;
  return Heard{static_cast<double>(scene.heard - since), static_cast<double>(scene.heard - signalled)};
}

}  // namespace

std::string_view name(Hears hears) noexcept {
  static constexpr std::array kNames{"poll of a pidfd",      "caller in a call",    "started call",        "next call",
                                     "last of 256 bindings", "server, client idle", "server, client calls"};
  return kNames[static_cast<std::size_t>(hears)];
}

std::string_view name(Way way) noexcept {
  static constexpr std::array kNames{"SIGKILL", "exit", "SIGSEGV", "sockets held"};
  return kNames[static_cast<std::size_t>(way)];
}

Result<Heard> stage_death(const std::string& nameserver, const Seats& seats, const Act& act) {
  static int performances = 0;
  const std::string name = fmt::format("death-{}", ++performances);  // the previous name may still be registered
  auto shared = Shared<Scene>::create();
  if (!shared) return shared.error();
  Scene& scene = **shared;
  auto server = Child::spawn("bench-server", seats.server,
                             [&] { return end_of("the server", be_server(nameserver, name, act, scene), scene); });
  if (!server) return server.error();
  const auto serves = [&] { return scene.server_ready.load(); };
  if (auto up = await(scene, serves, "the server did not become ready"); !up) return up.error();
  const ImportOptions options{.nameserver = nameserver, .timeout = kPatience, .gate = act.gate};
  auto client = Child::spawn("bench-client", seats.client, [&] {
    return end_of("the client", be_client(options, name, act, server->pid(), scene), scene);
  });
  if (!client) return client.error();
  const bool calls = act.hears == Hears::call || act.hears == Hears::started_call || act.hears == Hears::unbound_calls;
  const auto on_stage = [&] { return scene.client_ready && (!calls || scene.held); };
  if (auto up = await(scene, on_stage, "the client did not become ready"); !up) return up.error();
  auto heard = end(scene, act, client_dies(act.hears) ? client->pid() : server->pid());
  if (!heard || client_dies(act.hears)) return heard;
  // The client knows. Did it learn of the death in the expected way?
  if (auto ended = client->wait(kPatience); !ended) return Error{ended.code(), "the client " + ended.error().message()};
  if (Status ok = scene.failure.status(); !ok) return ok.error();
  return heard;
}

}  // namespace lrpc::bench
