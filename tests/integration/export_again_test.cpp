// A program withdraws a name and exports it again while its library is registering it with a new nameserver. The
// program never gets name_taken because of its own earlier export (LRPC §3.1).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "conformance_service.h"
#include "eventually.h"
#include "scripted_nameserver.h"
#include "temporary_directory.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::shim::Exported;
using lrpc::shim::ExportRequest;
using lrpc::shim::Withdrawn;
using lrpc::shim::WithdrawRequest;
using namespace std::chrono_literals;

/// Exports itself when it is called.
struct Exporting : ConformanceService {
  explicit Exporting(lrpc::Server& server) : ConformanceService(&server), to(server) {}
  void Null(lrpc::CallContext&) { outcome = Conformance::export_to(to, "late", *this).code(); }
  lrpc::Server& to;
  std::atomic<Errc> outcome{Errc::ok};
};

TEST(ServerThatEnds, does_not_let_its_procedures_wait_for_the_nameserver) {
  const TemporaryDirectory directory;
  const std::string path = directory / "nameserver";
  ScriptedNameserver nameserver(path);
  auto server = std::make_unique<lrpc::Server>(lrpc::ServerOptions{.nameserver = path});
  Exporting service(*server);
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends && Conformance::serve_over(*server, std::move(ends->first), service));
  auto client = Conformance::Client::import_over(std::move(ends->second));
  ASSERT_TRUE(client);
  auto call = std::async(std::launch::async, [&] { return client->Null().code(); });
  nameserver.accept();
  ASSERT_TRUE(nameserver.next<ExportRequest>()) << "it is not answered";
  server.reset();
  EXPECT_EQ(service.outcome.load(), Errc::peer_gone);
  (void)call.get();  // ok, or call_failed if the binding had been revoked before the procedure returned
}

class NameWithdrawnWhileItComesBack : public testing::Test {
 protected:
  void export_and_stop_the_nameserver() {
    auto exported = Conformance::export_to(server_, "again", service_);
    ASSERT_TRUE(exported);
    id_ = *exported;
    world_.stop_nameserver();
  }
  /// Exports "again" on another thread. Returns the result.
  std::future<Errc> export_again() {
    return std::async(std::launch::async, [&] { return Conformance::export_to(server_, "again", service_).code(); });
  }

  World world_;
  lrpc::Server server_{{.nameserver = world_.nameserver()}};
  ConformanceService service_{&server_};
  lrpc::ExportId id_{};
};

TEST_F(NameWithdrawnWhileItComesBack, is_exported_anew_once_the_nameserver_has_let_go_of_it) {
  export_and_stop_the_nameserver();
  ScriptedNameserver nameserver(world_.nameserver());
  nameserver.accept();
  ASSERT_EQ(nameserver.next<ExportRequest>().value().name, "again") << "it comes back by itself";
  EXPECT_TRUE(server_.withdraw(id_));
  auto again = export_again();
  EXPECT_EQ(again.wait_for(50ms), std::future_status::timeout);
  nameserver.answer(Exported{1});
  const auto withdrawal = nameserver.next<WithdrawRequest>();
  ASSERT_TRUE(withdrawal) << "a nameserver would answer name_taken to anything else";
  EXPECT_EQ(withdrawal->export_id, 1U);
  EXPECT_EQ(again.wait_for(50ms), std::future_status::timeout);
  nameserver.answer(Withdrawn{});
  ASSERT_EQ(nameserver.next<ExportRequest>().value().name, "again");
  nameserver.answer(Exported{2});
  EXPECT_EQ(again.get(), Errc::ok);
}

TEST_F(NameWithdrawnWhileItComesBack, is_exported_anew_if_the_nameserver_refuses_to_give_it_back) {
  export_and_stop_the_nameserver();
  ScriptedNameserver nameserver(world_.nameserver());
  nameserver.accept();
  ASSERT_TRUE(nameserver.next<ExportRequest>());
  EXPECT_TRUE(server_.withdraw(id_));
  auto again = export_again();
  EXPECT_EQ(again.wait_for(50ms), std::future_status::timeout);
  nameserver.answer(lrpc::shim::Failed{Errc::name_taken, "by somebody else"});
  ASSERT_TRUE(nameserver.next<ExportRequest>());
  nameserver.answer(Exported{1});
  EXPECT_EQ(again.get(), Errc::ok);
}

TEST_F(NameWithdrawnWhileItComesBack, is_exported_to_the_next_nameserver_if_this_one_goes) {
  export_and_stop_the_nameserver();
  std::future<Errc> again;
  {
    ScriptedNameserver nameserver(world_.nameserver());
    nameserver.accept();
    ASSERT_TRUE(nameserver.next<ExportRequest>());
    EXPECT_TRUE(server_.withdraw(id_));
    again = export_again();
    EXPECT_EQ(again.wait_for(50ms), std::future_status::timeout);
  }
  // No nameserver has the name any more. The next one may not be up yet; then the export reports that.
  const Errc came = again.get();
  EXPECT_TRUE(came == Errc::no_nameserver || came == Errc::peer_gone) << static_cast<int>(came);
  world_.start_nameserver();
  EXPECT_TRUE(Conformance::export_to(server_, "again", service_));
  EXPECT_TRUE(world_.import("again"));
}

TEST_F(NameWithdrawnWhileItComesBack, is_never_taken_by_oneself_however_nameservers_come_and_go) {
  std::atomic<bool> enough{false};
  std::atomic<int> exported{0};
  std::thread program([&] {
    while (!enough) {
      auto id = Conformance::export_to(server_, "again", service_);
      EXPECT_NE(id.code(), Errc::name_taken) << id.error().message();
      if (!id) continue;
      ++exported;
      EXPECT_TRUE(server_.withdraw(*id));
    }
  });
  for (int round = 0; round < 20; ++round) {
    world_.stop_nameserver();
    world_.start_nameserver();
    const int before = exported;
    EXPECT_TRUE(eventually([&] { return exported > before + 5; }));
  }
  enough = true;
  program.join();
}

/// Trying again would not help.
TEST(FirstExport, of_a_declaration_that_no_message_can_carry_is_refused_for_that) {
  const World world;
  ConformanceService service;
  lrpc::Server server({.nameserver = world.nameserver()});
  const std::string text(200'000, ' ');
  lrpc::Pdl pdl = Conformance::kPdl;
  pdl.text = text;
  const auto stubs = Conformance::Entry_<ConformanceService>::kStubs_;
  EXPECT_EQ(server.export_interface("long", pdl, stubs, &service).code(), Errc::limit_reached);
}

}  // namespace
}  // namespace testing_lrpc
