// Descriptors that are slow to close, sent to each party that has to close them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bad_packets.h"
#include "bystander.h"
#include "closing.h"
#include "eventually.h"
#include "lrpc/client.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "raw_binding.h"
#include "refused_calls.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;
namespace shim = lrpc::shim;

/// Closes this process's copy of an end that it has offered. By now it may be the last copy, so the close may block.
void close_own_copy(lrpc::UniqueFd& fd) { shim::close_aside(std::move(fd), {}); }

// ---- To a server's clerk ----

/// The server's threads have tables of descriptors of their own or, as in a sandbox, one table for all.
enum class Tables { own, one };

class ToAClerk : public Closing, public testing::WithParamInterface<std::tuple<Slow, Tables>> {
 protected:
  /// Fewer places are free than one message can carry descriptors, and enough for everything else.
  static constexpr auto kDescriptors = "320";
  static constexpr auto kOccupied = "120";

  ToAClerk() : Closing(std::get<Slow>(GetParam())) {}
  void SetUp() override {
    Closing::SetUp();
    if (IsSkipped()) return;
    std::vector<std::string> options = options_for_tables();
    options.insert(options.end(), {"--max-descriptors", kDescriptors, "--occupied-descriptors", kOccupied});
    server_ = world_.start_server({"victim"}, options);
    auto client = world_.import("victim");
    ASSERT_TRUE(client) << client.error().message();
    bystander_ = std::make_unique<Bystander>(*std::move(client));
    attacker_ = std::make_unique<RawBinding>(world_.nameserver(), "victim", shim::Gate::adaptive);
  }
  static std::vector<std::string> options_for_tables() {
    return std::get<Tables>(GetParam()) == Tables::one ? std::vector<std::string>{"--one-table"}
                                                       : std::vector<std::string>{};
  }
  /// An honest client calls, another one is bound and calls.
  void expect_service() {
    bystander_->call(20);
    auto client = world_.import("victim");
    ASSERT_TRUE(client) << client.error().message();
    EXPECT_EQ(client->Add(1, 2).value(), 3);
  }

  World world_;
  Process server_;
  std::unique_ptr<Bystander> bystander_;
  std::unique_ptr<RawBinding> attacker_;
};
std::string kind_and_tables(const testing::TestParamInfo<std::tuple<Slow, Tables>>& test) {
  return name_of(std::get<Slow>(test.param)) + (std::get<Tables>(test.param) == Tables::one ? "_in_one_table" : "");
}
INSTANTIATE_TEST_SUITE_P(Kinds, ToAClerk,
                         testing::Combine(testing::ValuesIn(kSlow), testing::Values(Tables::own, Tables::one)),
                         kind_and_tables);

TEST_P(ToAClerk, offered_on_the_bell) {
  for (const char message : {'\1', '\2', '\3', '\4', '\x9'}) {
    if (!send_one(attacker_->bell(), message)) break;  // the server has ended the binding
    expect_service();
  }
}

/// More descriptors than the receiving table may have room for. The slow one is the last, so it is the one that may not
/// fit, and nobody else has a copy.
TEST_P(ToAClerk, behind_many_descriptors_on_the_bell) {
  constexpr std::size_t kMostInMessage = 253;
  SlowToClose* const slow = make_one();
  ASSERT_NE(slow, nullptr);
  const lrpc::UniqueFd quick(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<int> fds(kMostInMessage, quick.get());
  fds.back() = slow->get();
  ASSERT_TRUE(send_packet(attacker_->bell(), std::array{std::byte{1}}, fds));
  slow->give_away_meanwhile();
  bystander_->call(20);
  // The server has few free descriptors until the others are closed.
  EXPECT_TRUE(eventually([this] { return world_.import("victim").has_value(); }));
}

TEST_P(ToAClerk, left_unread_on_the_bell) {
  // More messages than the clerk reads, so that some are left when it notices the hang-up.
  for (int i = 0; i < 200; ++i) shim::ring_bell(attacker_->bell());
  (void)send_one(attacker_->bell(), 1);
  for (int i = 0; i < 3; ++i) (void)send_one(attacker_->bell(), 2);
  attacker_.reset();
  expect_service();
}

TEST_P(ToAClerk, in_a_line) {
  for (const bool asked : {true, false}) {
    auto line = shim::make_socket_pair();
    ASSERT_TRUE(line);
    const shim::GrowthRequest request{.astack_class = 0, .place = 0, .count = 8};
    if (asked) {
      auto made = shim::ask_for_growth(attacker_->bell(), request);
      ASSERT_TRUE(made);
      line->first = *std::move(made);
    }
    ASSERT_TRUE(send_one(line->first.get(), 'x'));
    if (!asked) {
      ASSERT_TRUE(shim::offer_on_bell(attacker_->bell(), shim::BellMessage::grow, line->second.get()));
    }
    close_own_copy(line->second);
    line->first.reset();
    expect_service();
  }
}

TEST_P(ToAClerk, in_an_offer_of_callbacks) {
  auto pair = shim::make_socket_pair();
  ASSERT_TRUE(pair);
  ASSERT_TRUE(leave_one(pair->first.get()));
  ASSERT_TRUE(shim::offer_on_bell(attacker_->bell(), shim::BellMessage::callback, pair->second.get()));
  close_own_copy(pair->second);
  pair->first.reset();
  attacker_.reset();
  expect_service();
}

TEST_P(ToAClerk, over_a_private_socket) {
  PrivateServer server = start_private_server(options_for_tables());
  ASSERT_TRUE(send_one(server.socket.get(), 'x'));
  server.socket.reset();
  expect_service();
}

// ---- To a client ----

class ToAClient : public ClosingOfAKind {
 protected:
  /// Binds over a socket pair to a server that is this test: it sends `region` as the region and `bell` as the client's
  /// end. If `slow` is one of them, it is given away.
  static lrpc::Result<Conformance::Client> import_with(int region, int bell, SlowToClose* slow = nullptr,
                                                       const lrpc::ImportOptions& options = {}) {
    auto ends = answered_pair(encoded(conformance_answer()), std::array{region, bell});
    if (!ends) return ends.error();
    if (slow != nullptr) slow->give_away_meanwhile();
    return Conformance::Client::import_over(std::move(ends->first), options);
  }
  /// The line of the next request for A-stacks on a bell. Empty: there is no request.
  static shim::PeerSocket asked_on(int bell) {
    for (;;) {
      auto news = shim::receive_bell(bell);
      if (!news || !*news) return {};
      if ((*news)->message == shim::BellMessage::grow) return std::move((*news)->offered);
    }
  }
  /// Grants the request on a line, as an honest server does.
  static bool grant_on(int line) {
    const auto request = shim::take_growth_request(line, {});
    if (!request) return false;
    lrpc::AStackClass wanted = Conformance::kPdl.classes[request->astack_class];
    wanted.count = request->count;
    const auto region = shim::create_region(*shim::RegionLayout::of({&wanted, 1}));
    return region && shim::grant_growth(line, request->count, region->get());
  }
  static bool hung_up(int line) {
    pollfd entry{line, 0, 0};
    return poll(&entry, 1, 0) > 0;
  }
  /// Nobody serves the client's calls, so it soon asks for more A-stacks.
  static constexpr auto kCallTimeout = 50ms;
};
INSTANTIATE_TEST_SUITE_P(Kinds, ToAClient, testing::ValuesIn(kSlow), kind);

TEST_P(ToAClient, left_unread_on_the_bell) {
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(bell);
  ASSERT_TRUE(send_one(bell->first.get(), 'x'));
  {
    auto client = import_with(good_region().get(), bell->second.get());
    ASSERT_TRUE(client) << client.error().message();
    bell->second.reset();
    EXPECT_FALSE(send_one(bell->first.get(), 'x')) << "it says that it listens to nothing there";
  }
}

TEST_P(ToAClient, in_a_line) {
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(bell);
  auto client = import_with(good_region().get(), bell->second.get(), nullptr,
                            {.supply = lrpc::AStackSupply::grow, .call_timeout = kCallTimeout});
  ASSERT_TRUE(client) << client.error().message();
  bell->second.reset();
  const auto grant = [&] {
    for (shim::PeerSocket line; (line = asked_on(bell->first.get()));) {
      SlowToClose* const slow = make_one();
      if (slow == nullptr || !shim::grant_growth(line.get(), 4, slow->get())) continue;
      slow->give_away_meanwhile();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually([&] { return !client->Add(1, 2) && grant(); }));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(client->Add(1, 2)) << "takes what was granted";
}

/// After the grant on the line, or instead of it while the client does not look. The client closes the line when it
/// ends.
TEST_P(ToAClient, left_unread_in_a_line) {
  for (const bool granted : {true, false}) {
    auto bell = shim::make_socket_pair();
    ASSERT_TRUE(bell);
    auto client =
        import_with(good_region().get(), bell->second.get(), nullptr,
                    {.supply = lrpc::AStackSupply::grow, .grown_idle = lrpc::kNoLimit, .call_timeout = kCallTimeout});
    ASSERT_TRUE(client) << client.error().message();
    bell->second.reset();
    shim::PeerSocket line;
    ASSERT_TRUE(eventually([&] {
      EXPECT_FALSE(client->Add(1, 2));
      line = asked_on(bell->first.get());
      return line && (!granted || grant_on(line.get())) && leave_one(line.get());
    }));
    if (granted) {
      EXPECT_FALSE(client->Add(1, 2)) << "takes what was granted";
      EXPECT_FALSE(send_one(line.get(), 'x')) << "it says that it listens to nothing more there";
    }
    EXPECT_FALSE(hung_up(line.get()));
  }
}

TEST_P(ToAClient, in_place_of_a_region_or_a_bell) {
  const auto bell = shim::make_socket_pair();
  ASSERT_TRUE(bell);
  SlowToClose* region = make_one();
  EXPECT_FALSE(import_with(region->get(), bell->second.get(), region));
  SlowToClose* instead = make_one();
  const auto client = import_with(good_region().get(), instead->get(), instead);
  EXPECT_EQ(client.has_value(), GetParam() == Slow::laden);
}

TEST_P(ToAClient, over_the_socket_that_it_was_to_import_over) {
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(leave_one(ends->second.get()));
  EXPECT_FALSE(Conformance::Client::import_over(std::move(ends->first)));
}

// ---- To a nameserver ----

/// A nameserver as on any kernel, also as on one without SO_PASSRIGHTS.
class ANameserver {
 public:
  explicit ANameserver(bool refuses, std::uint64_t connections = lrpc::kNoLimit) {
    options_.socket_path = directory_.path() / "lrpcd.sock";
    options_.limits.user.connections = connections;
    daemon_ = std::thread([this, refuses] {
      can_ = refuses || forget_pass_rights();
      auto made = lrpc::nameserver::Nameserver::open(options_);
      if (made) nameserver_ = *std::move(made);
      opened_.count_down();
      runs_.wait();
      if (nameserver_ != nullptr && goes_on_) (void)nameserver_->run();
    });
    opened_.wait();
  }
  ANameserver(const ANameserver&) = delete;
  ANameserver& operator=(const ANameserver&) = delete;
  ~ANameserver() { end(); }
  /// Until then it listens and accepts nobody.
  void run() { runs_.count_down(); }
  /// Ends it, even if run() was not called.
  void end() {
    if (!daemon_.joinable()) return;
    if (nameserver_ != nullptr) nameserver_->stop();
    if (!runs_.try_wait()) {
      goes_on_ = false;
      runs_.count_down();
    }
    daemon_.join();
    nameserver_.reset();
  }
  [[nodiscard]] bool such_a_kernel_can_be_had() const { return can_; }
  /// Whether it listens.
  [[nodiscard]] bool there() const { return nameserver_ != nullptr; }
  [[nodiscard]] auto connect() const { return shim::connect_nameserver(options_.socket_path); }

 private:
  TemporaryDirectory directory_;
  lrpc::nameserver::NameserverOptions options_;
  std::unique_ptr<lrpc::nameserver::Nameserver> nameserver_;
  bool can_ = true;
  std::atomic<bool> goes_on_ = true;
  std::latch opened_{1};
  std::latch runs_{1};
  std::thread daemon_;
};

bool ask(int socket) { return shim::send_message(socket, {1, shim::ListRequest{}, {}, {}}).has_value(); }
bool is_answered(int socket) {
  const auto answer = shim::receive_message(socket);
  return answer && *answer && std::holds_alternative<shim::Listed>((*answer)->body);
}

class ToANameserver : public ClosingOfAKind {};
INSTANTIATE_TEST_SUITE_P(Kinds, ToANameserver, testing::ValuesIn(kSlow), kind);

TEST_P(ToANameserver, with_a_message_on_any_kernel) {
  for (const bool refuses : {true, false}) {
    ANameserver nameserver(refuses);
    if (!nameserver.such_a_kernel_can_be_had()) GTEST_SKIP() << kNoSuchKernel;
    ASSERT_TRUE(nameserver.there());
    nameserver.run();
    for (int i = 0; i < 3; ++i) {
      auto attacker = nameserver.connect();
      ASSERT_TRUE(attacker);
      const bool sent = send_one(attacker->get(), 'x');
      EXPECT_TRUE(sent || refuses);
      if (i == 1) (void)send_one(attacker->get(), 'y');  // stays unread behind the first
      attacker->reset();
      auto bystander = nameserver.connect();
      ASSERT_TRUE(bystander);
      EXPECT_TRUE(ask(bystander->get()) && is_answered(bystander->get()));
    }
  }
}

TEST_P(ToANameserver, before_it_turns_the_connection_away) {
  for (const bool refuses : {true, false}) {
    ANameserver nameserver(refuses, 1);
    if (!nameserver.such_a_kernel_can_be_had()) GTEST_SKIP() << kNoSuchKernel;
    ASSERT_TRUE(nameserver.there());
    auto bystander = nameserver.connect();
    ASSERT_TRUE(bystander);
    for (int i = 0; i < 3; ++i) {
      auto attacker = nameserver.connect();
      ASSERT_TRUE(attacker);
      const bool sent = leave_one(attacker->get());
      EXPECT_TRUE(sent || refuses);
    }
    nameserver.run();
    auto last = nameserver.connect();
    ASSERT_TRUE(last);
    EXPECT_FALSE(is_answered(last->get())) << "it is turned away, as all before it but one";
    EXPECT_TRUE(ask(bystander->get()) && is_answered(bystander->get()));
  }
}

TEST_P(ToANameserver, before_it_accepts_and_it_ends) {
  for (const bool refuses : {true, false}) {
    ANameserver nameserver(refuses);
    if (!nameserver.such_a_kernel_can_be_had()) GTEST_SKIP() << kNoSuchKernel;
    ASSERT_TRUE(nameserver.there());
    auto attacker = nameserver.connect();
    ASSERT_TRUE(attacker);
    const bool sent = leave_one(attacker->get());
    EXPECT_TRUE(sent || refuses);
    nameserver.end();
    EXPECT_FALSE(is_answered(attacker->get()));
  }
}

}  // namespace
}  // namespace testing_lrpc
