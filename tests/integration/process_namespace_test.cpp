// Bindings across PID namespaces: a process that the other side cannot see has no number there. Private ones, and those
// of an lrpcd in another namespace. And a server that sees no process, because it has no /proc.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "chatter_service.h"
#include "early_child.h"
#include "eventually.h"
#include "length.h"
#include "lrpc/client.h"
#include "lrpc/nameserver.h"
#include "lrpc/sandbox.h"
#include "lrpc/sealed.h"
#include "lrpc/server.h"
#include "temporary_directory.h"
#include "world.h"

namespace testing_lrpc {
namespace {

/// What `action` returns in the first process of a new PID namespace. That process ends with the calling process.
template <class Action>
int in_namespace_of_its_own(const Action& action) {
  if (::unshare(CLONE_NEWPID) != 0) return 77;
  const pid_t first = ::fork();
  if (first == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(action());
  }
  int status = 0;
  ::waitpid(first, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Puts another file system in the place of /proc, for this process and its children. `kind`: "proc", that of this
/// process's namespace; "tmpfs", an empty one.
bool change_proc(const char* kind) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/proc", kind, 0, nullptr) == 0;
}

/// What `client` returns in a process beside its server, which exports "chatter". Both get the nameserver's socket. 1:
/// the server cannot export. 77: it cannot enter this sandbox. 78: it knows the client by another number than its own,
/// or than 0 without `known`.
template <class Client>
int beside_a_server(const std::string& nameserver, Client client, bool known = true,
                    const std::optional<lrpc::sandbox::Options>& sandbox = {}) {
  EarlyChild caller(::geteuid(), client);
  if (sandbox && !lrpc::sandbox::enter(*sandbox)) return 77;
  const pid_t number = known ? caller.pid() : 0;
  std::atomic<bool> right{true};
  ChatterService service;
  lrpc::Server server({.nameserver = nameserver});
  lrpc::ExportOptions options;
  options.on_bound = [&](std::uint64_t, const lrpc::Credentials& bound) {
    if (bound.pid != number) right = false;
  };
  if (!Chatter::export_to(server, "chatter", service, options)) return 1;
  caller.begin(nameserver);
  const int came = caller.wait();
  return right ? came : 78;
}

/// As a client beside its server. `known`: whether the two know each other's process number.
int be_called_back(const std::string& nameserver, bool known) {
  auto chatter = Chatter::Client::import("chatter", {.nameserver = nameserver, .timeout = kPatience});
  if (!chatter || !chatter->Ping()) return 2;
  if (chatter->binding().server().pid != (known ? ::getppid() : 0)) return 3;
  ChatterListener listener;
  lrpc::Server own;
  if (!chatter->serve_callbacks(own, listener)) return 4;
  const auto sum = chatter->Sum(3);
  return known ? (sum && *sum == 6 ? 0 : 5) : (sum.code() == Errc::not_permitted ? 0 : 6);
}

/// The two sides are separate processes, forked before the test's process has threads.
class ProcessNamespaces : public testing::Test {
 protected:
  void SetUp() override {
    EarlyChild probe(::geteuid(), [](const std::string&) { return in_namespace_of_its_own([] { return 0; }); });
    probe.begin("now");
    if (probe.wait() == 77) GTEST_SKIP() << "needs CAP_SYS_ADMIN";
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    heard_ = lrpc::UniqueFd(ends[0]);
    tell_ = lrpc::UniqueFd(ends[1]);
  }
  void tell(char what) const { (void)!::write(tell_.get(), &what, 1); }
  [[nodiscard]] char hear() const {
    char what = 0;
    pollfd entry{heard_.get(), POLLIN, 0};
    return ::poll(&entry, 1, kPatienceMs) == 1 && ::read(heard_.get(), &what, 1) == 1 ? what : '-';
  }
  /// Serves, and reports its clients and whether it knows their process numbers.
  int serve(lrpc::UniqueFd socket) const {
    ChatterService service;
    lrpc::Server server;
    lrpc::ExportOptions options;
    options.on_bound = [this](std::uint64_t, const lrpc::Credentials& client) { tell(client.pid == 0 ? '0' : 'n'); };
    options.on_unbound = [this](std::uint64_t) { tell('u'); };
    if (!Chatter::serve_over(server, std::move(socket), service, options)) return 1;
    for (;;) ::pause();
  }
  /// The two ends of a pair, one for each process.
  std::pair<lrpc::UniqueFd, lrpc::UniqueFd> ends_ = lrpc::make_socket_pair().value();

 private:
  lrpc::UniqueFd heard_;
  lrpc::UniqueFd tell_;
};

TEST_F(ProcessNamespaces, a_server_hears_of_the_death_of_a_client_that_it_cannot_see_and_does_not_call_it_back) {
  EarlyChild server(::geteuid(), [this](const std::string&) {
    ends_.second.reset();
    return in_namespace_of_its_own([this] { return serve(std::move(ends_.first)); });
  });
  EarlyChild client(::geteuid(), [this](const std::string&) {
    ends_.first.reset();
    lrpc::UniqueFd again(::dup(ends_.second.get()));
    auto chatter = Chatter::Client::import_over(std::move(ends_.second), {.timeout = kPatience});
    if (!chatter || !chatter->Ping()) return 1;
    const auto trapped =
        Chatter::Client::import_over(std::move(again), {.timeout = kPatience, .gate = lrpc::Gate::trap});
    if (trapped.code() != Errc::not_supported) return 5;
    ChatterListener listener;
    lrpc::Server own;
    if (!chatter->serve_callbacks(own, listener)) return 2;
    const auto asked = chatter->Ask("?", 0, 0);
    if (!asked || static_cast<Errc>(asked->code) != Errc::not_permitted) return 3;
    ::kill(::getpid(), SIGKILL);
    return 4;
  });
  ends_.first.reset();
  ends_.second.reset();
  server.begin("now");
  client.begin("now");
  const int ended = client.wait();
  if (ended == -SIGKILL) {
    EXPECT_EQ(hear(), '0');
    EXPECT_EQ(hear(), 'u');
  }
  ::kill(server.pid(), SIGKILL);
  EXPECT_EQ(ended, -SIGKILL);
}

TEST_F(ProcessNamespaces, a_client_calls_a_server_that_it_cannot_see_and_hears_of_its_death) {
  EarlyChild server(::geteuid(), [this](const std::string&) {
    ends_.second.reset();
    return serve(std::move(ends_.first));
  });
  EarlyChild client(::geteuid(), [this](const std::string&) {
    ends_.first.reset();
    return in_namespace_of_its_own([this] {
      auto chatter = Chatter::Client::import_over(std::move(ends_.second), {.timeout = kPatience});
      if (!chatter || !chatter->Ping() || chatter->binding().server().pid != 0) return 1;
      tell('c');
      return eventually([&] { return chatter->binding().revoked(); }) ? 0 : 2;
    });
  });
  ends_.first.reset();
  ends_.second.reset();
  server.begin("now");
  client.begin("now");
  EXPECT_EQ(hear(), 'n');
  EXPECT_EQ(hear(), 'c');
  ::kill(server.pid(), SIGKILL);
  EXPECT_EQ(client.wait(), 0);
}

/// A container: the server and its client are in a namespace of their own, lrpcd is outside of it.
class OneNamespace : public ProcessNamespaces {
 protected:
  /// Has a client called back there. `proc`: what /proc is changed to; null: it stays that of the outer namespace.
  /// `sandbox`: the server's.
  void call_back(const char* proc, bool known, const std::optional<lrpc::sandbox::Options>& sandbox = {}) {
    EarlyChild both(::geteuid(), [&](const std::string& nameserver) {
      return in_namespace_of_its_own([&] {
        if (proc != nullptr && !change_proc(proc)) return 77;
        const auto client = [known](const std::string& told) { return be_called_back(told, known); };
        return beside_a_server(nameserver, client, known, sandbox);
      });
    });
    const World world;
    both.begin(world.nameserver());
    const int came = both.wait();
    if (came == 77) GTEST_SKIP() << "this process can mount no other /proc, or enter no sandbox";
    EXPECT_EQ(came, 0);
  }
};

TEST_F(OneNamespace, of_both_sides_lets_the_server_call_back_although_lrpcd_has_other_numbers) {
  call_back("proc", true);
}

TEST_F(OneNamespace, of_both_sides_lets_the_server_call_back_also_by_the_proc_of_an_outer_one) {
  call_back(nullptr, true);
}

TEST_F(OneNamespace, without_a_proc_that_tells_numbers_uses_none_of_lrpcds) { call_back("tmpfs", false); }

TEST_F(OneNamespace, of_both_sides_lets_a_server_call_back_whose_sandbox_lets_it_read_proc_self) {
  lrpc::sandbox::Options options;
  options.read_only = {"/proc/self"};
  options.allow = {"wait4"};  // for the client, which is a child of the server here
  options.required = true;
  call_back("proc", true, options);
}

TEST_F(OneNamespace, of_both_sides_lets_the_server_serve_a_sealed_client) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's runtime may have a thread, and a sealed process has one only";
  EarlyChild both(::geteuid(), [](const std::string& nameserver) {
    return in_namespace_of_its_own([&] {
      return beside_a_server(nameserver, [](const std::string& told) {
        auto chatter =
            Chatter::Client::import("chatter", {.nameserver = told, .timeout = kPatience, .gate = lrpc::Gate::trap});
        if (!chatter) return 2;
        const auto sealed = lrpc::seal(chatter->binding());
        if (!sealed) return sealed.code() == Errc::not_supported ? 77 : 3;
        return chatter->Ping() && chatter->Ping() ? 0 : 4;
      });
    });
  });
  const World world;
  both.begin(world.nameserver());
  const int came = both.wait();
  if (came == 77) GTEST_SKIP() << "no process can seal itself here";
  EXPECT_EQ(came, 0);
}

TEST_F(ProcessNamespaces, a_server_gives_no_number_to_a_client_that_lrpcd_sees_and_it_does_not) {
  EarlyChild server(::geteuid(), [this](const std::string& nameserver) {
    return in_namespace_of_its_own([&] {
      ChatterService service;
      lrpc::Server own({.nameserver = nameserver});
      lrpc::ExportOptions options;
      options.on_bound = [this](std::uint64_t, const lrpc::Credentials& client) { tell(client.pid == 0 ? '0' : 'n'); };
      options.on_unbound = [this](std::uint64_t) { tell('u'); };
      if (!Chatter::export_to(own, "chatter", service, options)) return 1;
      for (;;) ::pause();
    });
  });
  {
    const World world;
    server.begin(world.nameserver());
    lrpc::ImportOptions patient{.nameserver = world.nameserver(), .timeout = kPatience};
    auto chatter = Chatter::Client::import("chatter", patient);
    EXPECT_TRUE(chatter) << chatter.error().message();
    EXPECT_EQ(hear(), '0');
    if (chatter) {
      ChatterListener listener;
      lrpc::Server own;
      EXPECT_TRUE(chatter->serve_callbacks(own, listener));
      EXPECT_EQ(chatter->Sum(1).code(), Errc::not_permitted);
      patient.gate = lrpc::Gate::trap;
      EXPECT_EQ(Chatter::Client::import("chatter", patient).code(), Errc::not_supported);
    }
  }
  EXPECT_EQ(hear(), 'u');
  ::kill(server.pid(), SIGKILL);
}

/// lrpcd sees neither side there; both see lrpcd.
TEST_F(ProcessNamespaces, above_that_of_lrpcd_let_a_server_call_back) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(ends_.first.get(), SOL_SOCKET, kPeerPidfd, &pidfd, &size) != 0)
    GTEST_SKIP() << "before Linux 6.5 lrpcd gets no pidfd of what it does not see";
  ::close(pidfd);
  EarlyChild both(::geteuid(), [](const std::string& nameserver) {
    return beside_a_server(nameserver, [](const std::string& told) { return be_called_back(told, true); });
  });
  EarlyChild lrpcd(::geteuid(), [this](const std::string& socket) {
    return in_namespace_of_its_own([&]() -> int {
      lrpc::nameserver::NameserverOptions options;
      options.socket_path = socket;
      const auto nameserver = lrpc::nameserver::Nameserver::start(std::move(options));
      tell(nameserver ? 'r' : 'f');
      for (;;) ::pause();
    });
  });
  const TemporaryDirectory directory;
  lrpcd.begin(directory / "s");
  EXPECT_EQ(hear(), 'r');
  both.begin(directory / "s");
  EXPECT_EQ(both.wait(), 0);
  ::kill(lrpcd.pid(), SIGKILL);
}

/// The first process of each PID namespace has the number 1.
TEST_F(ProcessNamespaces, a_fork_child_with_its_parents_number_is_another_process) {
  if (kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator does not know of forks";
  EarlyChild parent(::geteuid(), [this](const std::string&) {
    return in_namespace_of_its_own([this] {
      ChatterService service;
      auto server = std::make_unique<lrpc::Server>();
      if (!Chatter::serve_over(*server, std::move(ends_.first), service)) return 1;
      auto chatter = Chatter::Client::import_over(std::move(ends_.second), {.timeout = kPatience});
      if (!chatter || !chatter->Ping()) return 2;
      auto client = std::make_unique<Chatter::Client>(*std::move(chatter));
      const int in_child = in_namespace_of_its_own([&] {
        if (::getpid() != 1 || client->Ping().code() != Errc::binding_revoked) return 3;
        client.reset();
        server.reset();
        return 0;
      });
      return in_child == 0 && !client->Ping() ? 4 : in_child;
    });
  });
  parent.begin("now");
  EXPECT_EQ(parent.wait(), 0);
}

TEST(ServerWithoutProc, refuses_the_trap_gate_with_the_reason_and_serves_by_the_others) {
  auto ends = lrpc::make_socket_pair().value();
  EarlyChild server(::geteuid(), [&ends](const std::string&) {
    ends.second.reset();
    char directory[] = "/tmp/lrpc-empty-XXXXXX";
    if (::mkdtemp(directory) == nullptr || ::chdir(directory) != 0 || ::rmdir(directory) != 0 || ::chroot(".") != 0)
      return 77;  // a removed directory is an empty one
    ChatterService service;
    lrpc::Server own;
    if (!Chatter::serve_over(own, std::move(ends.first), service)) return 1;
    for (;;) ::pause();
  });
  EarlyChild client(::geteuid(), [&ends](const std::string&) {
    ends.first.reset();
    lrpc::UniqueFd again(::dup(ends.second.get()));
    auto chatter = Chatter::Client::import_over(std::move(ends.second), {.timeout = kPatience});
    if (!chatter || !chatter->Ping()) return 1;
    const auto trapped =
        Chatter::Client::import_over(std::move(again), {.timeout = kPatience, .gate = lrpc::Gate::trap});
    if (trapped.code() != Errc::not_supported) return 2;
    return trapped.error().message().find("/proc") != std::string::npos && chatter->Ping() ? 0 : 3;
  });
  ends.first.reset();
  ends.second.reset();
  server.begin("now");
  client.begin("now");
  const int called = client.wait();
  ::kill(server.pid(), SIGKILL);
  if (server.wait() == 77) GTEST_SKIP() << "this process cannot change its root directory";
  EXPECT_EQ(called, 0);
}

}  // namespace
}  // namespace testing_lrpc
