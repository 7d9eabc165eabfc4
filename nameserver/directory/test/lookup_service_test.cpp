// What a client of this machine is told of a name, by what etcd has, had, or does not say.
#include "lookup/lookup_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "directory.client.h"
#include "eventually.h"
#include "fake_etcd.h"

namespace lrpc::directory::test {
namespace {

constexpr const char* kPrefix = "/test";
constexpr std::uint64_t kHash = 0x1234;
const Host kOwn = *parse_host("10.0.0.1");

PublishedName published(const std::string& name, const char* host, std::uint16_t major = 1) {
  return {name, *parse_host(host), 1, {"Files", major, 0, kHash}};
}

/// A client of the service in this process, and its etcd.
class Lookups : public ::testing::Test {
 protected:
  explicit Lookups(LookupBudgets::Budget budget = {}) : budget_(budget) {
    auto ends = shim::make_socket_pair().value();
    EXPECT_TRUE(Directory::serve_over(server_, std::move(ends.first), service_));
    client_.emplace(Directory::Client::import_over(std::move(ends.second)).value());
  }
  void publish(const PublishedName& one) { etcd_.set(key_of(kPrefix, one.name, one.host), value_of(one)); }
  /// For a client that waits no longer than `wait_ms`, and has version 1 of the interface.
  auto look_up(const char* name, std::uint32_t wait_ms = 0) {
    return client_->Lookup(name, "Files", std::uint16_t{1}, std::uint16_t{0}, kHash, wait_ms);
  }
  /// Why not; Errc::ok: hosts were found.
  Errc refusal_of(const char* name) {
    const auto answer = look_up(name);
    const auto* const refused = answer.raised<Directory::Refused>();
    return refused != nullptr ? static_cast<Errc>(refused->code) : answer.code();
  }

  const LookupBudgets::Budget budget_;
  FakeEtcd etcd_;
  Etcd connection_{etcd_.options()};
  Said said_;
  void have(const PublishedName& name) {
    const std::lock_guard lock(mutex_);
    own_name_ = name;
  }
  std::mutex mutex_;
  std::optional<PublishedName> own_name_;
  LookupService service_{connection_,
                         {.prefix = kPrefix,
                          .oldest = std::chrono::hours(24),
                          .own = [] { return kOwn; },
                          .own_name = [this](const std::string& name) -> std::optional<PublishedName> {
                            const std::lock_guard lock(mutex_);
                            return own_name_ && own_name_->name == name ? own_name_ : std::nullopt;
                          },
                          .log = said_.log(),
                          .budget = budget_}};
  Server server_;
  std::optional<Directory::Client> client_;
};

TEST_F(Lookups, find_the_hosts_that_etcd_has_this_machine_first) {
  publish(published("files", "10.0.0.2"));
  publish(published("files", "10.0.0.1"));
  have(published("files", "10.0.0.1"));
  publish(published("filesystem", "10.0.0.3"));
  const auto answer = look_up("files");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->hosts.str(), "10.0.0.1 10.0.0.2");
  EXPECT_TRUE(answer->own);
  EXPECT_EQ(answer->age_ms, 0U) << "etcd says so now";
}

TEST_F(Lookups, name_no_more_hosts_than_an_answer_holds) {
  for (int i = 2; i < 20; ++i) publish(published("files", ("10.0.0." + std::to_string(i)).c_str()));
  const auto answer = look_up("files");
  ASSERT_TRUE(answer) << answer.error().message();
  const std::string hosts = answer->hosts.str();
  EXPECT_EQ(std::ranges::count(hosts, ' '), static_cast<std::ptrdiff_t>(LookupService::kMostAnswered) - 1) << hosts;
  EXPECT_FALSE(answer->own);
}

TEST_F(Lookups, name_each_host_once_whatever_etcd_says) {
  publish(published("files", "10.0.0.2"));
  publish(published("files", "10.0.0.3"));
  etcd_.repeat(5);
  const std::string hosts = look_up("files").value().hosts.str();
  EXPECT_TRUE(hosts == "10.0.0.2 10.0.0.3" || hosts == "10.0.0.3 10.0.0.2") << hosts;
  EXPECT_EQ(said_.text(), "etcd has 8 entries below /test/names/files/ that are not right and are not used\n");
}

TEST_F(Lookups, use_no_more_entries_than_they_have_asked_for) {
  publish(published("files", "10.0.0.2"));
  publish(published("files", "10.0.0.3"));
  etcd_.repeat(static_cast<int>(LookupService::kMostRead));
  EXPECT_EQ(look_up("files").value().hosts.str(), "10.0.0.2");
}

TEST_F(Lookups, tell_a_name_that_nobody_has_from_one_with_another_version) {
  publish(published("old", "10.0.0.2", 2));
  EXPECT_EQ(refusal_of("nothing"), Errc::name_unknown);
  EXPECT_EQ(refusal_of("old"), Errc::version_mismatch);
  EXPECT_EQ(refusal_of("no name"), Errc::invalid_argument);
  publish(published("old", "10.0.0.3", 1));
  EXPECT_EQ(look_up("old").value().hosts.str(), "10.0.0.3") << "the one that fits";
}

TEST_F(Lookups, use_no_entry_that_is_not_right_and_say_so_once) {
  publish(published("files", "10.0.0.2"));
  etcd_.set(key_of(kPrefix, "files", *parse_host("10.0.0.3")), "what is this");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look_up("files").value().hosts.str(), "10.0.0.2");
  EXPECT_EQ(said_.text(), "etcd has 1 entries below /test/names/files/ that are not right and are not used\n");
}

TEST_F(Lookups, believe_this_machine_and_not_etcd_about_its_own_names) {
  publish(published("files", "10.0.0.1", 2));
  have(published("files", "10.0.0.1"));
  EXPECT_EQ(look_up("files").value().hosts.str(), "10.0.0.1");
}

TEST_F(Lookups, do_not_believe_etcd_that_this_machine_has_a_name_that_it_does_not_export) {
  publish(published("files", "10.0.0.1"));
  publish(published("files", "10.0.0.2"));
  publish(published("private", "10.0.0.1"));
  const auto answer = look_up("files");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->hosts.str(), "10.0.0.2");
  EXPECT_FALSE(answer->own);
  EXPECT_EQ(refusal_of("private"), Errc::name_unknown);
  etcd_.set_down(true);
  EXPECT_EQ(look_up("files").value().hosts.str(), "10.0.0.2") << "nor what it has said before";
}

TEST_F(Lookups, give_what_etcd_said_last_while_it_is_down_and_say_why_of_other_names) {
  publish(published("files", "10.0.0.2"));
  EXPECT_EQ(refusal_of("files"), Errc::ok);
  have(published("mine", "10.0.0.1"));
  etcd_.set_down(true);
  const auto answer = look_up("files");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->hosts.str(), "10.0.0.2");
  EXPECT_GT(answer->age_ms, 0U);
  EXPECT_EQ(look_up("mine").value().hosts.str(), "10.0.0.1") << "this machine knows its own names without etcd";
  EXPECT_EQ(refusal_of("others"), Errc::remote_unavailable);
  etcd_.set_down(false);
  EXPECT_TRUE(testing_lrpc::eventually([&] { return refusal_of("others") == Errc::name_unknown; }));
}

TEST_F(Lookups, that_wait_for_a_name_are_answered_when_it_appears) {
  const PublishedName late = published("late", "10.0.0.2");
  etcd_.on_watch(key_of(kPrefix, "late", late.host), [&] { publish(late); });
  EXPECT_TRUE(testing_lrpc::eventually([&] {  // one call waits some seconds
    const auto answer = look_up("late", testing_lrpc::kPatienceMs);
    return answer && answer->hosts.str() == "10.0.0.2";
  }));
}

TEST_F(Lookups, name_a_host_that_was_not_reached_behind_the_others) {
  publish(published("files", "10.0.0.2"));
  publish(published("files", "10.0.0.3"));
  const auto first_of_some = [&] {
    std::set<std::string> first;
    for (int i = 0; i < 30; ++i) first.insert(look_up("files").value().hosts.str().substr(0, 8));
    return first;
  };
  EXPECT_TRUE(testing_lrpc::eventually([&] {  // it is not remembered for long
    EXPECT_TRUE(client_->Report("10.0.0.2", false));
    return first_of_some() == std::set<std::string>{"10.0.0.3"};
  }));
  EXPECT_TRUE(client_->Report("10.0.0.2", true));
  EXPECT_TRUE(testing_lrpc::eventually([&] { return first_of_some().size() == 2; })) << "they share the clients again";
}

/// Each user may ask three times.
class FewLookups : public Lookups {
 protected:
  FewLookups() : Lookups({.burst = 3, .comes_back = std::chrono::hours(24)}) {}
};

TEST_F(FewLookups, that_are_too_many_ask_etcd_no_more_and_are_answered_by_what_is_known) {
  publish(published("files", "10.0.0.2"));
  have(published("mine", "10.0.0.1"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look_up("files").value().age_ms, 0U);
  const int asked = etcd_.requests();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(refusal_of("others"), Errc::limit_reached);
  const auto answer = look_up("files");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->hosts.str(), "10.0.0.2");
  EXPECT_GT(answer->age_ms, 0U);
  EXPECT_EQ(look_up("mine").value().hosts.str(), "10.0.0.1");
  EXPECT_EQ(etcd_.requests(), asked);
}

TEST_F(FewLookups, that_are_too_many_begin_no_watch_and_are_answered_at_once) {
  EXPECT_EQ(refusal_of("late"), Errc::name_unknown);
  EXPECT_EQ(refusal_of("late"), Errc::name_unknown);
  const PublishedName late = published("late", "10.0.0.2");
  etcd_.on_watch(key_of(kPrefix, "late", late.host), [&] { publish(late); });
  const auto answer = look_up("late", testing_lrpc::kPatienceMs);  // the third question is this lookup's own
  const auto* const refused = answer.raised<Directory::Refused>();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(static_cast<Errc>(refused->code), Errc::name_unknown);
  EXPECT_EQ(etcd_.requests(), 3);
}

}  // namespace
}  // namespace lrpc::directory::test
