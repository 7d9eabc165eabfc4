// The replicas: their journals, and that the group loses nothing that it has acknowledged.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "group_of_machines.h"
#include "journal.h"
#include "length.h"
#include "replicated.h"

namespace replicas {
namespace {

class Journals : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (directory_.path() / "journal").string(); }
  /// The replayed records, or the error if the journal cannot be opened.
  [[nodiscard]] std::vector<std::string> replayed() const {
    std::vector<std::string> records;
    const auto opened = Journal::open(path(), [&](std::string_view record) { records.emplace_back(record); });
    if (!opened) return {opened.error().message()};
    return records;
  }
  [[nodiscard]] std::string contents() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void append(const std::vector<std::string>& records) const {
    auto journal = Journal::open(path(), [](std::string_view) {});
    ASSERT_TRUE(journal) << journal.error().message();
    for (const std::string& record : records) EXPECT_TRUE(journal->append(record));
  }

 private:
  testing_lrpc::TemporaryDirectory directory_;
};

TEST_F(Journals, give_back_what_was_appended) {
  EXPECT_TRUE(replayed().empty());
  const std::vector<std::string> records{"one", "", "two\nlines", std::string("\0 and 3", 7), std::string(4096, 'x')};
  append(records);
  EXPECT_EQ(replayed(), records);
}

TEST_F(Journals, lose_a_torn_last_record_and_nothing_else) {
  append({"one", "two", "three\n5 and more"});
  const std::string whole = contents();
  append({"four"});
  const std::string all = contents();
  for (std::size_t size = whole.size(); size < all.size(); ++size) {
    std::ofstream(path(), std::ios::binary) << all.substr(0, size);
    EXPECT_EQ(replayed().size(), 3U) << size;
    EXPECT_EQ(contents(), whole);
  }
  append({"again"});
  EXPECT_EQ(replayed().back(), "again");
}

TEST_F(Journals, are_not_opened_when_they_are_damaged_in_the_middle) {
  append({"one", "two"});
  append(std::vector<std::string>(3, std::string(4000, 'x')));
  std::string text = contents();
  text[text.find("two")] = 'x';
  std::ofstream(path(), std::ios::binary) << text;
  ASSERT_EQ(replayed().size(), 1U);
  EXPECT_NE(replayed().front().find("damaged"), std::string::npos);
  EXPECT_EQ(contents(), text);
}

TEST_F(Journals, belong_to_one_at_a_time) {
  const auto journal = Journal::open(path(), [](std::string_view) {});
  ASSERT_TRUE(journal);
  EXPECT_FALSE(Journal::open(path(), [](std::string_view) {}));
}

}  // namespace
}  // namespace replicas

namespace lrpc::netd::test {
namespace {

class Replicas : public GroupOfMachines {};

TEST_F(Replicas, work_from_the_command_line) {
  const auto replicas = [&](const std::string& arguments) {
    std::string output;
    client->in([&] {
      output = run(std::string(LRPC_REPLICAS) + " --nameserver " + client->socket() + " " + arguments).output;
    });
    return output;
  };
  EXPECT_EQ(replicas("put colour blue"), "");
  EXPECT_EQ(replicas("get colour"), "blue\n");
  EXPECT_EQ(replicas("add 40"), "40\n");
  EXPECT_EQ(replicas("add 2 --place 5"), "42\n");
  kill_member(1);
  // Without this member, each command needs both others to answer within the timeout of its import.
  EXPECT_TRUE(eventually([&] { return replicas("get colour") == "blue\n"; }));
  EXPECT_TRUE(eventually([&] { return replicas("put colour green").empty(); }));
  EXPECT_TRUE(eventually([&] { return replicas("count") == "42\n"; }));
}

/// What one client has written, and how much of that was acknowledged to it.
struct Written {
  struct Numbers {
    int tried = -1;
    int acknowledged = -1;
  };
  std::map<std::string, Numbers> of_keys;
  std::uint64_t count_tried = 0;
  std::uint64_t count_acknowledged = 0;
};

/// While clients write and count, a member is killed and restarted; in the long form, one after another. At the end all
/// replicas are restarted.
TEST_F(Replicas, lose_nothing_that_was_acknowledged_when_members_are_killed) {
  auto imported = Store::Client::import("store@everyone", options());
  ASSERT_TRUE(imported) << imported.error().message() << logs();
  std::atomic<bool> done{false};
  std::atomic<int> acknowledged{0};
  std::array<Written, 2> all;
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < all.size(); ++w) {
    writers.emplace_back([&, w, &mine = all[w]] {
      auto impatient = options();
      impatient.call_timeout = std::chrono::seconds(1);  // some calls fail, and some of these have taken effect
      auto store = replicas::ReplicatedStore::import("store@replicas", impatient);
      auto counter = replicas::ReplicatedCounter::import("counter@replicas", w, impatient);
      ASSERT_TRUE(store && counter) << logs();
      for (int i = 0; !done; ++i) {
        const std::string name = "key " + std::to_string(w) + "." + std::to_string(i % 3);
        auto& numbers = mine.of_keys[name];
        numbers.tried = i;
        if (store->put(name, std::to_string(i))) {
          numbers.acknowledged = i;
          ++acknowledged;
        }
        const auto step = static_cast<std::uint64_t>(i % 4);
        mine.count_tried += step;
        if (counter->add(step)) mine.count_acknowledged += step;
      }
    });
  }
  const auto goes_on = [&](const char* when) {
    const int before = acknowledged;
    EXPECT_TRUE(eventually([&] { return acknowledged >= before + 10; })) << when;
  };
  for (int round = 0; round < testing_lrpc::rounds(1); ++round) {
    const std::size_t i = (testing_lrpc::test_seed() + static_cast<std::size_t>(round)) % kMembers;
    goes_on("with all members");
    kill_member(i);
    goes_on("with two of three");
    start_member(i);
    EXPECT_TRUE(eventually([&] { return heard(*imported).contains(address(i)); })) << logs();
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
  for (std::size_t i = 0; i < kMembers; ++i) restart_replica(i);
  EXPECT_TRUE(eventually([&] { return heard(*imported).size() == kMembers; })) << logs();

  auto store = replicas::ReplicatedStore::import("store@replicas", options());
  auto counter = replicas::ReplicatedCounter::import("counter@replicas", 5, options());
  ASSERT_TRUE(store && counter);
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  for (const Written& written : all) {
    for (const auto& one : written.of_keys) {  // no structured binding: clang 14 does not let lambdas have one
      const std::string& name = one.first;
      const Written::Numbers& numbers = one.second;
      auto value = store->get(name);
      EXPECT_TRUE(eventually([&] { return (value = store->get(name)).has_value(); })) << value.error().message();
      const int number = value && *value ? std::stoi(**value) : -1;
      EXPECT_GE(number, numbers.acknowledged) << name;
      EXPECT_LE(number, numbers.tried) << name;
      const auto again = store->get(name);
      EXPECT_TRUE(!again || *again == *value) << name << " has changed";
    }
    least += written.count_acknowledged;
    most += written.count_tried;
  }
  auto sum = counter->value();
  EXPECT_TRUE(eventually([&] { return (sum = counter->value()).has_value(); }));
  EXPECT_GE(*sum, least);
  EXPECT_LE(*sum, most);
}

}  // namespace
}  // namespace lrpc::netd::test
