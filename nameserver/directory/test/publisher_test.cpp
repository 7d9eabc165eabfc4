// What a machine's names become in etcd: a nameserver, servers, and a network domain that only says what it exports.
#include "publish/publisher.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "conformance_service.h"
#include "eventually.h"
#include "fake_etcd.h"
#include "fake_network_domain.h"
#include "world.h"

namespace lrpc::directory::test {
namespace {

using testing_lrpc::eventually;

class Publishing : public ::testing::Test {
 protected:
  void start_network() { ASSERT_TRUE(network::export_to(server_, std::string(shim::kNetworkName), network_)); }
  ExportId start(const std::string& name) { return Conformance::export_to(server_, name, service_).value(); }
  void publish() {
    PublisherOptions options;
    options.nameserver = world_.nameserver();
    options.prefix = "/test";
    options.policy.grace = std::chrono::milliseconds(0);
    options.look_every = std::chrono::milliseconds(5);
    options.log = said_.log();
    publisher_.emplace(connection_, std::move(options));
    publisher_->begin();
  }
  /// The keys in etcd, without the prefix.
  std::set<std::string> names() {
    std::set<std::string> found;
    for (const auto& [key, value] : etcd_.keys()) found.insert(key.substr(keys_of_all("/test").size()));
    return found;
  }
  bool becomes(const std::set<std::string>& wanted) {
    return eventually([&] { return names() == wanted; });
  }

  testing_lrpc::World world_;
  Server server_{{.nameserver = world_.nameserver()}};
  testing_lrpc::ConformanceService service_;
  FakeNetworkDomain network_;
  FakeEtcd etcd_;
  Etcd connection_{etcd_.options()};
  Said said_;
  std::optional<Publisher> publisher_;
};

TEST_F(Publishing, puts_what_the_network_domain_exports_into_etcd) {
  start_network();
  start("files");
  start("secret");
  publish();
  ASSERT_TRUE(becomes({"files/10.0.0.1"})) << said_.text();
  const std::string key = key_of("/test", "files", *parse_host("10.0.0.1"));
  const auto read = parse_published("/test", key, etcd_.keys()[key]);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->interface.hash, Conformance::kPdl.interface.hash);
  EXPECT_NE(read->instance, 0U);
  EXPECT_EQ(publisher_->own(), network_.address);
  EXPECT_TRUE(publisher_->own_name("files"));
  EXPECT_FALSE(publisher_->own_name("secret"));
}

TEST_F(Publishing, follows_names_that_come_and_go) {
  start_network();
  const ExportId first = start("first");
  publish();
  ASSERT_TRUE(becomes({"first/10.0.0.1"})) << said_.text();
  start("second");
  ASSERT_TRUE(becomes({"first/10.0.0.1", "second/10.0.0.1"})) << said_.text();
  ASSERT_TRUE(server_.withdraw(first));
  EXPECT_TRUE(becomes({"second/10.0.0.1"})) << said_.text();
  EXPECT_TRUE(eventually([&] { return !publisher_->own_name("first"); }));
}

TEST_F(Publishing, ends_with_its_lease_and_all_names_at_once) {
  start_network();
  start("files");
  publish();
  ASSERT_TRUE(becomes({"files/10.0.0.1"})) << said_.text();
  publisher_.reset();
  EXPECT_EQ(names(), std::set<std::string>());
}

TEST_F(Publishing, begins_anew_when_etcd_was_down_or_has_lost_the_lease) {
  start_network();
  start("files");
  etcd_.set_down(true);
  publish();
  EXPECT_TRUE(eventually([&] { return publisher_->own_name("files").has_value(); })) << "known without etcd";
  EXPECT_TRUE(eventually([&] { return said_.has("etcd: "); }));
  etcd_.set_down(false);
  ASSERT_TRUE(becomes({"files/10.0.0.1"})) << said_.text();
  etcd_.lose_everything();
  start("more");  // to be put under the lease that is gone
  EXPECT_TRUE(becomes({"files/10.0.0.1", "more/10.0.0.1"})) << said_.text();
  EXPECT_TRUE(said_.has("etcd has lost the lease")) << said_.text();
}

TEST_F(Publishing, follows_the_local_names_while_etcd_leaves_a_request_unanswered) {
  start_network();
  const ExportId first = start("first");
  etcd_.set_silent(true);
  publish();
  EXPECT_TRUE(eventually([&] { return etcd_.requests() > 0; }));
  start("second");
  EXPECT_TRUE(server_.withdraw(first));
  EXPECT_TRUE(eventually([&] { return publisher_->own_name("second") && !publisher_->own_name("first"); }));
  EXPECT_FALSE(said_.has("etcd: ")) << "only after the request has failed";
  etcd_.set_silent(false);
  EXPECT_TRUE(becomes({"second/10.0.0.1"})) << said_.text();
}

TEST_F(Publishing, publishes_nothing_while_the_address_is_not_known_and_says_so) {
  network_.address = 0;
  start_network();
  start("files");
  publish();
  EXPECT_TRUE(eventually([&] { return said_.has("does not know this machine's address"); }));
  EXPECT_EQ(publisher_->own(), 0U);
  EXPECT_EQ(names(), std::set<std::string>());
  network_.address = *parse_host("10.0.0.1");
  EXPECT_TRUE(becomes({"files/10.0.0.1"})) << said_.text();
}

/// All machines with such an lrpc-netd would have one key, under which each takes the others' name out.
TEST_F(Publishing, publishes_nothing_at_an_address_that_every_machine_has) {
  network_.address = 0x7f000001;
  start_network();
  start("files");
  publish();
  EXPECT_TRUE(eventually([&] { return said_.has("the address 127.0.0.1, which leads no other host here"); }));
  EXPECT_TRUE(publisher_->own_name("files")) << "this machine's clients find it";
  network_.address = *parse_host("10.0.0.1");
  EXPECT_TRUE(becomes({"files/10.0.0.1"})) << said_.text();
}

TEST_F(Publishing, waits_for_a_network_domain_that_has_not_exported_itself_again) {
  const auto name = network::export_to(server_, std::string(shim::kNetworkName), network_);
  ASSERT_TRUE(name);
  publish();
  ASSERT_TRUE(eventually([&] { return publisher_->own() != 0; }));
  ASSERT_TRUE(server_.withdraw(*name));  // as where lrpcd has just restarted: the binding lives
  EXPECT_TRUE(eventually([&] { return said_.has("no lrpc-netd here"); }));
  EXPECT_FALSE(said_.has("does not know this machine's address")) << said_.text();
}

TEST_F(Publishing, waits_for_a_network_domain) {
  start("files");
  publish();
  EXPECT_TRUE(eventually([&] { return said_.has("no lrpc-netd here"); }));
  start_network();
  EXPECT_TRUE(becomes({"files/10.0.0.1"})) << said_.text();
}

}  // namespace
}  // namespace lrpc::directory::test
