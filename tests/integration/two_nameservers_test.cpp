// Programs that find their nameserver by themselves, where there are two: the user's and the system's.
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "conformance_service.h"
#include "counting_policy.h"
#include "early_child.h"
#include "eventually.h"
#include "lrpc/nameserver.h"
#include "lrpc/sealed.h"
#include "temporary_directory.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::nameserver::Nameserver;
using namespace std::chrono_literals;

constexpr int kNotPossibleHere = 77;

/// The system's nameserver, and the user's, which is looked for first and is restarted.
class TwoNameservers {
 public:
  explicit TwoNameservers(const std::string& runtime_directory)
      : users_socket_(runtime_directory + "/lrpc/lrpcd.sock") {
    ::unsetenv("LRPC_SOCKET");
    ::setenv("XDG_RUNTIME_DIR", runtime_directory.c_str(), 1);
    systems_ = started(lrpc::shim::kSystemSocket, imports_of_system_);
    start_users();
  }
  void start_users() { users_ = started(users_socket_, imports_of_user_); }
  void stop_users() { users_.reset(); }

  /// Stops the user's nameserver once it has an import that waits. 0: the import waits for it, and asks no other; 1: it
  /// asks the system's; 2: it fails otherwise; kNotPossibleHere: it cannot be made here.
  int import_waits_for_users(const std::function<Errc()>& import) {
    // On a stalled machine the import's time may be over before the nameserver stops: then try again.
    for (Errc came{}; came != Errc::peer_gone;) {
      const int before = imports_of_user_->imports;
      std::atomic<bool> over{false};
      std::thread stopper([&] {
        (void)eventually([&] { return over || imports_of_user_->imports != before; });
        stop_users();
      });
      came = import();
      over = true;
      stopper.join();
      if (imports_of_system_->imports != 0) return 1;
      if (came == Errc::not_supported) return kNotPossibleHere;
      if (came != Errc::peer_gone && came != Errc::name_unknown) return 2;
      start_users();
    }
    return 0;
  }

 private:
  static std::unique_ptr<Nameserver> started(const std::string& socket, std::shared_ptr<CountingPolicy> policy) {
    lrpc::nameserver::NameserverOptions options;
    options.socket_path = socket;
    options.policy = std::move(policy);
    auto nameserver = Nameserver::start(std::move(options));
    if (!nameserver) throw std::runtime_error(nameserver.error().message());
    return *std::move(nameserver);
  }

  const std::string users_socket_;
  const std::shared_ptr<CountingPolicy> imports_of_user_ = std::make_shared<CountingPolicy>();
  const std::shared_ptr<CountingPolicy> imports_of_system_ = std::make_shared<CountingPolicy>();
  std::unique_ptr<Nameserver> systems_;
  std::unique_ptr<Nameserver> users_;
};

/// What `action` returns in a process with a /run of its own.
int with_two_nameservers(const std::function<int(TwoNameservers&)>& action) {
  const TemporaryDirectory directory;
  EarlyChild child(::geteuid(), [&](const std::string& runtime_directory) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/run", "tmpfs", 0, nullptr) != 0)
      return kNotPossibleHere;
    TwoNameservers nameservers(runtime_directory);
    return action(nameservers);
  });
  child.begin(directory.path().string());
  return child.wait();
}

TEST(TwoNameservers, a_server_exports_again_where_it_has_exported_and_nowhere_else) {
  const int outcome = with_two_nameservers([](TwoNameservers& nameservers) {
    std::atomic<bool> lost{false};
    lrpc::Server server;
    ConformanceService service(&server);
    lrpc::ExportOptions options;
    options.on_registration = [&](const lrpc::Status& status) { lost = !status; };
    if (!Conformance::export_to(server, "name", service, options)) return 1;
    nameservers.stop_users();
    if (!eventually([&] { return lost.load(); })) return 2;
    // A process that ends closes its connections first, perhaps, and then the socket on which it listens.
    const auto nobody_there = [&] { return Conformance::export_to(server, "another", service).code(); };
    if (!eventually([&] { return nobody_there() == Errc::no_nameserver; })) return 3;
    nameservers.start_users();
    if (!eventually([&] { return !lost; })) return 4;
    return Conformance::Client::import("name") ? 0 : 5;
  });
  if (outcome == kNotPossibleHere) GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  EXPECT_EQ(outcome, 0);
}

TEST(TwoNameservers, an_import_that_waits_for_a_restart_asks_no_other_meanwhile) {
  const int outcome = with_two_nameservers([](TwoNameservers& nameservers) {
    return nameservers.import_waits_for_users(
        [] { return Conformance::Client::import("nobody", {.timeout = 500ms}).code(); });
  });
  if (outcome == kNotPossibleHere) GTEST_SKIP() << "needs CAP_SYS_ADMIN";
  EXPECT_EQ(outcome, 0);
}

TEST(TwoNameservers, a_sealed_program_that_waits_for_a_restart_asks_no_other_meanwhile) {
  const int outcome = with_two_nameservers([](TwoNameservers& nameservers) {
    return nameservers.import_waits_for_users([] {
      lrpc::SealedOptions options;
      options.name = "nobody";
      options.timeout = 500ms;
      options.pdl = &Conformance::kPdl;
      return lrpc::SealedDomain::start({LRPC_TEST_SEALED, "status", "0"}, std::move(options)).code();
    });
  });
  if (outcome == kNotPossibleHere) GTEST_SKIP() << "needs CAP_SYS_ADMIN, and a kernel that can start sealed programs";
  EXPECT_EQ(outcome, 0);
}

}  // namespace
}  // namespace testing_lrpc
