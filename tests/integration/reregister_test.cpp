// A server whose nameserver goes and comes back, hangs, or answers too late (LRPC §3.1).
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "conformance_service.h"
#include "eventually.h"
#include "world.h"

#include "../../libclient/src/import/answer_slack.h"
#include "../../libserver/src/clerk/answer_time.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;

/// What on_registration was called with, in order.
class Registrations {
 public:
  [[nodiscard]] lrpc::ExportOptions options() {
    lrpc::ExportOptions options;
    options.on_registration = [this](const lrpc::Status& status) {
      std::lock_guard lock(mutex_);
      heard_.push_back(status.code());
    };
    return options;
  }
  [[nodiscard]] std::vector<Errc> heard() const {
    std::lock_guard lock(mutex_);
    return heard_;
  }
  [[nodiscard]] bool heard_exactly(std::initializer_list<Errc> codes) const {
    std::lock_guard lock(mutex_);
    return std::ranges::equal(heard_, codes);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Errc> heard_;
};

TEST(Reregister, names_come_back_with_the_nameserver_and_bindings_never_notice) {
  World world;
  const Process server = world.start_server({"one", "two"});
  auto old = world.import("one");
  ASSERT_TRUE(old) << old.error().message();
  for (int round = 0; round < 3; ++round) {
    world.stop_nameserver();
    EXPECT_EQ(old->Add(round, 1).value(), round + 1);
    EXPECT_EQ(world.import("one").code(), Errc::no_nameserver);
    world.start_nameserver();
    for (const char* name : {"one", "two"}) {
      auto client = world.import(name, {.timeout = kPatience});
      ASSERT_TRUE(client) << client.error().message();
      EXPECT_EQ(client->ServerPid().value(), server.pid());
    }
  }
  EXPECT_EQ(old->Add(20, 22).value(), 42);
}

TEST(Reregister, importers_that_wait_while_the_nameserver_restarts_are_served) {
  World world;
  std::vector<std::optional<lrpc::Result<Conformance::Client>>> clients(4);
  std::vector<std::thread> importers;
  for (auto& client : clients) {
    importers.emplace_back([&] {
      // An import fails at once while there is no nameserver.
      do {
        client.emplace(world.import("late", {.timeout = kPatience}));
      } while (client->code() == Errc::no_nameserver);
    });
  }
  std::this_thread::sleep_for(100ms);
  world.stop_nameserver();
  std::this_thread::sleep_for(100ms);
  world.start_nameserver();
  const Process server = world.start_server({"late"});
  for (auto& importer : importers) importer.join();
  for (auto& client : clients) {
    ASSERT_TRUE(*client) << client->error().message();
    EXPECT_EQ((*client)->Add(1, 2).value(), 3);
  }
}

TEST(Reregister, an_importer_that_waits_gives_up_in_its_time_when_no_nameserver_comes_back) {
  // On a stalled machine the nameserver may be stopped before the import, or only after its time is over: then try
  // again.
  for (Errc came{}; came != Errc::peer_gone;) {
    World world;
    const auto began = std::chrono::steady_clock::now();
    std::thread stopper([&] {
      std::this_thread::sleep_for(100ms);
      world.stop_nameserver();
    });
    came = world.import("nobody", {.timeout = 500ms}).code();
    const auto took = std::chrono::steady_clock::now() - began;
    stopper.join();
    ASSERT_TRUE(came == Errc::peer_gone || came == Errc::name_unknown || came == Errc::no_nameserver);
    if (came == Errc::peer_gone) {
      EXPECT_GE(took, 500ms);
    }
  }
}

TEST(Reregister, the_program_hears_of_it_and_its_export_ids_stay_valid) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  Registrations registrations;
  auto first = Conformance::export_to(server, "first", service);
  auto id = Conformance::export_to(server, "heard", service, registrations.options());
  ASSERT_TRUE(first && id);
  ASSERT_TRUE(server.withdraw(*first));  // so that a new nameserver gives other numbers
  world.stop_nameserver();
  ASSERT_TRUE(eventually([&] { return registrations.heard_exactly({Errc::peer_gone}); }));
  world.start_nameserver();
  ASSERT_TRUE(eventually([&] { return registrations.heard_exactly({Errc::peer_gone, Errc::ok}); }));
  ASSERT_TRUE(world.import("heard"));
  EXPECT_EQ(world.import("first").code(), Errc::name_unknown) << "what was withdrawn stays away";
  ASSERT_TRUE(server.withdraw(*id));
  EXPECT_EQ(world.import("heard").code(), Errc::name_unknown);
  EXPECT_EQ(server.withdraw(*id).code(), Errc::invalid_argument);
}

TEST(Reregister, a_name_withdrawn_while_disconnected_does_not_come_back) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  Registrations registrations;
  auto gone = Conformance::export_to(server, "gone", service);
  auto back = Conformance::export_to(server, "back", service, registrations.options());
  ASSERT_TRUE(gone && back);
  world.stop_nameserver();
  ASSERT_TRUE(eventually([&] { return registrations.heard().size() == 1; }));
  EXPECT_TRUE(server.withdraw(*gone));
  EXPECT_EQ(Conformance::export_to(server, "new", service).code(), Errc::no_nameserver);
  world.start_nameserver();
  ASSERT_TRUE(world.import("back", {.timeout = kPatience}));
  EXPECT_EQ(world.import("gone").code(), Errc::name_unknown);
  EXPECT_EQ(world.import("new").code(), Errc::name_unknown) << "an export that failed is none";
  EXPECT_TRUE(Conformance::export_to(server, "gone", service)) << "the name is free";
}

TEST(Reregister, an_export_that_finds_the_nameserver_first_brings_the_other_names_along) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  Registrations registrations;
  ASSERT_TRUE(Conformance::export_to(server, "old", service, registrations.options()));
  world.stop_nameserver();
  ASSERT_TRUE(eventually([&] { return registrations.heard().size() == 1; }));
  std::this_thread::sleep_for(500ms);  // by now the pauses have grown
  world.start_nameserver();
  auto added = Conformance::export_to(server, "new", service);
  ASSERT_TRUE(added) << added.error().message();
  EXPECT_TRUE(world.import("old", {.timeout = kPatience}));
  EXPECT_TRUE(world.import("new"));
}

TEST(Reregister, a_name_that_somebody_else_took_meanwhile_is_asked_for_until_it_is_free) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  Registrations registrations;
  // The first to ask gets the name. The server asks again only after the program has taken note of the loss.
  std::atomic<bool> stolen{false};
  auto options = registrations.options();
  options.on_registration = [&, hear = options.on_registration](const lrpc::Status& status) {
    hear(status);
    if (status.code() != Errc::peer_gone) return;
    EXPECT_TRUE(eventually([&] { return stolen.load(); }));
  };
  ASSERT_TRUE(Conformance::export_to(server, "coveted", service, std::move(options)));
  world.stop_nameserver();
  ASSERT_TRUE(eventually([&] { return registrations.heard().size() == 1; }));
  world.start_nameserver();
  std::optional<Process> thief;
  thief.emplace(world.start_server({"coveted"}));
  stolen = true;
  ASSERT_TRUE(eventually([&] { return registrations.heard().back() == Errc::name_taken; }));
  EXPECT_EQ(world.import("coveted")->ServerPid().value(), thief->pid());
  thief->kill_and_wait();
  ASSERT_TRUE(eventually([&] { return registrations.heard().back() == Errc::ok; }));
  EXPECT_EQ(world.import("coveted", {.timeout = kPatience})->ServerPid().value(), getpid());
}

TEST(Reregister, the_callbacks_of_a_refused_export_go_while_no_lock_is_held) {
  World world;
  lrpc::Server first({.nameserver = world.nameserver()});
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  ASSERT_TRUE(Conformance::export_to(first, "taken", service));
  std::future<Errc> withdrawal;  // on another thread, so that a deadlock does not hang this one
  std::atomic<bool> came{false};
  lrpc::ExportOptions options;
  const auto use_the_server = [&](const void*) {
    withdrawal = std::async(std::launch::async, [&] { return server.withdraw(lrpc::ExportId{99}).code(); });
    came = withdrawal.wait_for(kPatience) == std::future_status::ready;
  };
  options.on_bound = [held = std::shared_ptr<const void>(nullptr, use_the_server)](auto&&...) {};
  EXPECT_EQ(Conformance::export_to(server, "taken", service, std::move(options)).code(), Errc::name_taken);
  EXPECT_TRUE(came);
  EXPECT_EQ(withdrawal.get(), Errc::invalid_argument);
}

TEST(Reregister, the_callback_may_withdraw_and_throw) {
  World world;
  std::optional<lrpc::Server> server(std::in_place, lrpc::ServerOptions{.nameserver = world.nameserver()});
  ConformanceService service(&*server);
  std::optional<lrpc::ExportId> id;
  std::atomic<int> told{0};
  lrpc::ExportOptions options;
  options.on_registration = [&](const lrpc::Status& status) {
    if (status) {
      EXPECT_EQ(Conformance::export_to(*server, "another", service).code(), Errc::invalid_argument);
      EXPECT_TRUE(server->withdraw(*id));
    }
    ++told;
    throw std::runtime_error("thrown on purpose");
  };
  auto exported = Conformance::export_to(*server, "brief", service, options);
  ASSERT_TRUE(exported);
  id = *exported;
  ASSERT_TRUE(Conformance::export_to(*server, "steady", service));
  testing::internal::CaptureStderr();
  world.stop_nameserver();
  ASSERT_TRUE(eventually([&] { return told == 1; }));
  world.start_nameserver();
  ASSERT_TRUE(eventually([&] { return told == 2; }));
  EXPECT_TRUE(world.import("steady", {.timeout = kPatience}));
  EXPECT_TRUE(eventually([&] { return world.import("brief").code() == Errc::name_unknown; }));
  server.reset();  // waits for the callback
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_NE(printed.find("lrpc: an exception escaped on_registration of Conformance: thrown on purpose\n"),
            std::string::npos)
      << printed;
}

TEST(Reregister, many_imports_at_once_are_all_answered) {
  World world;
  const Process server = world.start_server({"busy"});
  std::atomic<int> bound{0};
  std::vector<std::thread> importers;
  for (int i = 0; i < 8; ++i) {
    importers.emplace_back([&] {
      for (int k = 0; k < 25; ++k) {
        auto client = world.import("busy", {.timeout = kPatience});
        // The nameserver limits the descriptors in flight to one server.
        while (client.code() == Errc::limit_reached) client = world.import("busy", {.timeout = kPatience});
        EXPECT_TRUE(client) << client.error().message();
        bound += client.has_value();
      }
    });
  }
  for (auto& importer : importers) importer.join();
  EXPECT_EQ(bound, 200);
}

TEST(Reregister, many_names_come_back) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Conformance::export_to(server, "name-" + std::to_string(i), service));
  world.stop_nameserver();
  world.start_nameserver();
  for (int i = 0; i < 200; i += 33) {
    auto client = world.import("name-" + std::to_string(i), {.timeout = kPatience});
    ASSERT_TRUE(client) << client.error().message();
  }
}

/// A socket that accepts connections and never answers, at the path of a former nameserver.
class MuteNameserver {
 public:
  explicit MuteNameserver(const std::string& path) : listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    unlink(path.c_str());
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_.get(), 0) != 0) {
      throw std::runtime_error("MuteNameserver");
    }
  }
  [[nodiscard]] lrpc::UniqueFd accept_one() const {
    return lrpc::UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  lrpc::UniqueFd listener_;
};

TEST(Reregister, a_nameserver_that_hangs_does_not_keep_the_clerk_from_its_bindings) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  ConformanceService service(&server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Conformance::export_to(server, "name-" + std::to_string(i), service));
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends && Conformance::serve_over(server, std::move(ends->first), service));
  auto id = Conformance::export_to(server, "unheard", service);
  ASSERT_TRUE(id);
  world.stop_nameserver();
  for (const bool queue_full : {true, false}) {
    const MuteNameserver mute(world.nameserver());
    std::vector<lrpc::UniqueFd> queued;
    while (queue_full) {
      auto socket = lrpc::shim::connect_nameserver(world.nameserver(), false);
      if (!socket) {
        EXPECT_EQ(socket.code(), Errc::no_nameserver);
        EXPECT_NE(socket.error().text.find("its queue is full"), std::string::npos) << socket.error().text;
        break;
      }
      queued.push_back(*std::move(socket));
    }
    std::this_thread::sleep_for(200ms);  // by now its socket is full of requests for names
    // It never answers: a clerk that waited for it would not serve this import.
    auto client = Conformance::Client::import_over(lrpc::UniqueFd(dup(ends->second.get())));
    ASSERT_TRUE(client) << client.error().message();
    EXPECT_EQ(client->Add(1, 2).value(), 3);
    if (!queue_full) {
      EXPECT_TRUE(server.withdraw(*id)) << "nobody has it";
    }
  }
}

TEST(Reregister, an_export_answered_too_late_is_withdrawn) {
  struct ShortAnswerTime {
    ShortAnswerTime() { lrpc::server::answer_time = 200ms; }
    ~ShortAnswerTime() { lrpc::server::answer_time = kPatience; }
  } const until_there_is_no_server;
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "lrpcd.sock").string();
  const MuteNameserver mute(path);
  lrpc::Server server({.nameserver = path});
  ConformanceService service(&server);
  lrpc::UniqueFd connection;
  std::uint32_t number = 0;
  std::thread nameserver([&] {
    connection = mute.accept_one();
    auto request = lrpc::shim::receive_message(connection.get(), kPatience);
    ASSERT_TRUE(request && *request);
    number = (*request)->request;
  });
  EXPECT_EQ(Conformance::export_to(server, "late", service).code(), Errc::timed_out);
  nameserver.join();
  ASSERT_TRUE(lrpc::shim::send_message(connection.get(), {number, lrpc::shim::Exported{4711}, {}, {}}));
  auto withdrawal = lrpc::shim::receive_message(connection.get(), kPatience);
  ASSERT_TRUE(withdrawal && *withdrawal);
  const auto* body = std::get_if<lrpc::shim::WithdrawRequest>(&(*withdrawal)->body);
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(body->export_id, 4711U);
}

TEST(Reregister, an_import_that_nobody_answers_is_timed_out) {
  struct ShortAnswerSlack {
    ShortAnswerSlack() { lrpc::client::answer_slack = 100ms; }
    ~ShortAnswerSlack() { lrpc::client::answer_slack = kPatience; }
  } const until_it_is_over;
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "lrpcd.sock").string();
  const MuteNameserver mute(path);
  EXPECT_EQ(Conformance::Client::import("x", {.nameserver = path, .timeout = 0ms}).code(), Errc::timed_out);
}

}  // namespace
}  // namespace testing_lrpc
