// import("name@") between machines whose etcd asks for certificates, a user and a password.
#include "machines.h"

namespace lrpc::directory::test {
namespace {

class GuardedMachines : public Machines {
 protected:
  void SetUp() override {
    if (const auto why = Certificates::why_none()) GTEST_SKIP() << *why;
    certificates.emplace("10.7.0.100");
    Machines::SetUp();
  }
};

TEST_F(GuardedMachines, publish_find_and_withdraw_names_also_when_etcd_has_forgotten_who_they_are) {
  start_all();
  std::optional<Process> server = start_server(1);
  ASSERT_TRUE(becomes_published({"10.7.0.2"}));
  const auto client = import(0, {.timeout = testing_lrpc::kPatience});
  EXPECT_TRUE(client) << client.error().message();
  server.reset();
  EXPECT_TRUE(becomes_published({}));
  EXPECT_EQ(outcome_of_import(0), Errc::name_unknown);
  etcd->kill();  // its tokens are in its memory alone
  etcd->start();
  const Process other = start_server(2);
  EXPECT_TRUE(becomes_published({"10.7.0.3"}));
  EXPECT_EQ(server_of(0), other.pid());
}

}  // namespace
}  // namespace lrpc::directory::test
