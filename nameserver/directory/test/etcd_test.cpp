// The client of etcd and the publisher, against a real etcd on loopback.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "etcd_server.h"
#include "eventually.h"

namespace lrpc::directory::test {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::eventually;

class RealEtcd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_etcd()) GTEST_SKIP() << *why;
    server.emplace();
    etcd.emplace(server->options());
  }
  [[nodiscard]] std::vector<KeyValue> all() {
    auto range = etcd->range("/lrpc/", 1000);
    EXPECT_TRUE(range) << range.error().message();
    return range ? range->found : std::vector<KeyValue>();
  }

  std::optional<EtcdServer> server;
  std::optional<Etcd> etcd;
};

TEST_F(RealEtcd, keeps_what_is_put_under_a_lease_and_gives_it_back_in_order) {
  const auto lease = etcd->grant(60s);
  ASSERT_TRUE(lease) << lease.error().message();
  const std::vector<KeyValue> entries{{"/lrpc/a", std::string("\0\xff", 2)}, {"/lrpc/b", "2"}};
  ASSERT_TRUE(etcd->put(entries, lease->id));
  EXPECT_EQ(all(), entries);
  EXPECT_EQ(etcd->attached(lease->id).value(), 2U);
  EXPECT_EQ(etcd->keep_alive(lease->id)->ttl, 60s);
  EXPECT_EQ(etcd->range("/lrpc/", 1)->more, 1U);
  ASSERT_TRUE(etcd->remove(std::span(entries).first(1), lease->id));
  EXPECT_EQ(all().size(), 1U);
  ASSERT_TRUE(etcd->revoke(lease->id));
  EXPECT_TRUE(all().empty()) << "what was attached goes with the lease";
}

TEST_F(RealEtcd, takes_as_many_names_in_one_transaction_as_a_step_has) {
  std::vector<KeyValue> entries;
  for (std::size_t i = 0; i < kMostOperations; ++i) entries.push_back({"/lrpc/" + std::to_string(i), "v"});
  ASSERT_TRUE(etcd->put(entries, etcd->grant(60s)->id));
  EXPECT_EQ(all().size(), kMostOperations);
}

TEST_F(RealEtcd, removes_as_many_names_in_one_transaction_as_a_step_has_but_those_of_another_lease) {
  std::vector<KeyValue> entries;
  for (std::size_t i = 0; i < kMostOperations; ++i) entries.push_back({"/lrpc/" + std::to_string(i), "v"});
  const LeaseId mine = etcd->grant(60s)->id;
  ASSERT_TRUE(etcd->put(entries, mine));
  ASSERT_TRUE(etcd->put(std::span(entries).subspan(7, 1), etcd->grant(60s)->id));
  const Status removed = etcd->remove(entries, mine);
  ASSERT_TRUE(removed) << removed.error().message();
  EXPECT_EQ(all(), std::vector<KeyValue>{entries[7]});
  EXPECT_TRUE(etcd->remove(entries, mine)) << "none of them is there any more, for this lease";
}

TEST_F(RealEtcd, removes_no_key_that_another_lease_has_by_now) {
  const LeaseId mine = etcd->grant(60s)->id;
  const LeaseId others = etcd->grant(60s)->id;
  const KeyValue entry{"/lrpc/a", "1"};
  ASSERT_TRUE(etcd->put(std::span(&entry, 1), mine));
  ASSERT_TRUE(etcd->put(std::span(&entry, 1), others));
  EXPECT_TRUE(etcd->remove(std::span(&entry, 1), mine)) << "no error: it is not there any more, for this host";
  EXPECT_EQ(all().size(), 1U);
}

TEST_F(RealEtcd, says_that_a_lease_is_lost) {
  const LeaseId lease = etcd->grant(60s)->id;
  ASSERT_TRUE(etcd->revoke(lease));
  const KeyValue entry{"/lrpc/a", "1"};
  EXPECT_EQ(etcd->keep_alive(lease)->ttl, 0s);
  EXPECT_EQ(etcd->put(std::span(&entry, 1), lease).code(), Errc::name_unknown);
  EXPECT_EQ(etcd->attached(lease).code(), Errc::name_unknown);
  EXPECT_EQ(etcd->revoke(lease).code(), Errc::name_unknown);
}

TEST_F(RealEtcd, expires_a_lease_that_nobody_keeps_alive_and_tells_who_watches) {
  const auto now = etcd->range("/lrpc/", 10);
  ASSERT_TRUE(now) << now.error().message();
  const KeyValue entry{"/lrpc/a", "1"};
  ASSERT_TRUE(eventually([&] {  // on a busy machine a lease may have expired before the put
    const auto lease = etcd->grant(1s);
    return lease && etcd->put(std::span(&entry, 1), lease->id);
  }));
  std::vector<Change> seen;
  const std::atomic<bool> stop = false;
  const Status watched = etcd->watch(
      "/lrpc/", now->revision + 1, 240s,
      [&](const Changes& changes) {
        seen.insert(seen.end(), changes.changes.begin(), changes.changes.end());
        return seen.empty() || !seen.back().removed;
      },
      stop);
  EXPECT_TRUE(watched) << watched.error().message();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().key, "/lrpc/a");
  EXPECT_TRUE(seen.back().removed);
}

TEST_F(RealEtcd, tells_a_watch_what_has_happened_since_the_answer_that_it_follows) {
  const auto before = etcd->range("/lrpc/", 10);
  const KeyValue entry{"/lrpc/a", "1"};
  ASSERT_TRUE(etcd->put(std::span(&entry, 1), etcd->grant(60s)->id));
  std::string key;
  const std::atomic<bool> stop = false;
  EXPECT_TRUE(etcd->watch(
      "/lrpc/", before->revision + 1, 240s,
      [&](const Changes& changes) {
        for (const Change& change : changes.changes) key = change.key;
        return key.empty();
      },
      stop));
  EXPECT_EQ(key, "/lrpc/a");
}

TEST_F(RealEtcd, that_is_dead_is_unavailable_and_its_leases_outlive_a_restart) {
  const LeaseId lease = etcd->grant(600s)->id;
  const KeyValue entry{"/lrpc/a", "1"};
  ASSERT_TRUE(etcd->put(std::span(&entry, 1), lease));
  server->kill();
  EXPECT_EQ(etcd->range("/lrpc/", 10).code(), Errc::remote_unavailable);
  server->start();
  EXPECT_TRUE(eventually([&] { return etcd->keep_alive(lease)->ttl == 600s; }));
  EXPECT_EQ(all().size(), 1U);
}

TEST(SeveralMembers, keep_leases_and_watches_when_the_one_that_served_them_dies) {
  if (const auto why = why_no_etcd()) GTEST_SKIP() << *why;
  EtcdCluster cluster;
  Etcd etcd(cluster.options());
  const auto lease = etcd.grant(600s);
  ASSERT_TRUE(lease) << lease.error().message();
  const KeyValue before{"/lrpc/a", "1"};
  ASSERT_TRUE(etcd.put(std::span(&before, 1), lease->id));
  const auto now = etcd.range("/lrpc/", 10);
  ASSERT_TRUE(now) << now.error().message();

  const std::atomic<bool> stop = false;
  std::atomic<bool> stands = false;
  std::string key;
  Status watched;
  std::thread watcher([&] {
    watched = etcd.watch(
        "/lrpc/", now->revision + 1, 240s,
        [&](const Changes& changes) {
          stands = true;
          for (const Change& change : changes.changes) key = change.key;
          return key.empty();
        },
        stop);
  });
  EXPECT_TRUE(eventually([&] { return stands.load(); }));
  cluster.kill(0);  // the first endpoint: all went there so far
  const KeyValue late{"/lrpc/late", "1"};
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(etcd.put(std::span(&late, 1), lease->id)); }));
  watcher.join();
  EXPECT_TRUE(watched) << watched.error().message();
  EXPECT_EQ(key, "/lrpc/late");
  EXPECT_TRUE(eventually([&] {
    const auto kept = etcd.keep_alive(lease->id);
    return kept && kept->ttl == 600s;
  }));
  EXPECT_EQ(etcd.attached(lease->id).value(), 2U);
}

}  // namespace
}  // namespace lrpc::directory::test
