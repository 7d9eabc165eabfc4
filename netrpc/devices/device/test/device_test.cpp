// One suite for ETH, IP and UDP, on io_uring and on epoll: two hosts joined by a veth pair.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <numeric>

#include "device_addresses.h"
#include "eventually.h"
#include "length.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/devices/device/internet_address.h"
#include "netrpc/devices/eth/eth.h"
#include "netrpc/devices/ip/ip.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {
namespace {

constexpr ProtocolNumber kOther = protocol_numbers::kFirstOfTests + 1;

Result<std::unique_ptr<Protocol>> make_device(const std::string& kind, Host& host) {
  if (kind == "ETH") return make_eth(host, "eth", {});
  if (kind == "IP") return make_ip(host, "ip", {});
  return make_udp(host, "udp", {});
}

using Parameters = std::tuple<std::string, EngineKind>;

class Devices : public testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    if (kind() == EngineKind::uring)
      if (auto engine = UringEngine::make(EngineKind::uring); !engine) GTEST_SKIP() << engine.error().message();
    pair_.emplace();
    a_ = std::make_unique<RealHost>(pair_->left, kind(), "a");
    b_ = std::make_unique<RealHost>(pair_->right, kind(), "b");
    a_->inside([&] {
      device_a_ = &a_->keep(make_device(device(), **a_));
      talker_ = &a_->keep(std::make_unique<Talker>(**a_, false));
    });
    b_->inside([&] {
      device_b_ = &b_->keep(make_device(device(), **b_));
      echo_ = &b_->keep(std::make_unique<Talker>(**b_, true));
      ASSERT_TRUE(device_b_->open_enable(*echo_, {kEcho, {}, {}}));
    });
    b_->start(2);
  }
  void TearDown() override {
    session_ = nullptr;
    if (a_) a_->inside([&] { kept_.clear(); });
    a_.reset();
    b_.reset();
  }

  [[nodiscard]] static std::string device() { return std::get<0>(GetParam()); }
  [[nodiscard]] static EngineKind kind() { return std::get<1>(GetParam()); }

  void open() {
    a_->inside([&] {
      ParticipantSet participants{kEcho, {}, {}};
      participants.remote.host = kB;
      auto opened = device_a_->open(*talker_, participants);
      if (!opened) throw std::runtime_error(opened.error().message());
      kept_.push_back(opened.value());
      session_ = kept_.back().get();
    });
    if (device() == "ETH") wait_for_arp();
  }
  /// Before ARP has answered, the first messages wait, and later ones are dropped.
  void wait_for_arp() {
    EXPECT_TRUE(a_->becomes([&] {
      control::Resolve question{kB, {}};
      return control::ask(*device_a_, question) == Errc::ok;
    }));
  }
  Message message(std::size_t size, std::uint8_t first = 0) {
    Message made(a_->operator*().pool());
    for (std::size_t done = 0; done < size;) {
      Message part = Message::make(a_->operator*().pool(), std::min(size - done, Message::kMaxContiguous));
      for (std::byte& byte : part.bytes()) byte = static_cast<std::byte>(first + done++);
      EXPECT_TRUE(made.append(std::move(part)));
    }
    return made;
  }
  /// One round trip; false if nothing came back.
  bool round_trip(Message request) {
    const Shepherd inside(a_->operator*().monitor());
    const std::uint64_t before = talker_->received;
    EXPECT_EQ(session_->push(std::move(request)), Errc::ok);
    return a_->engine().wait(
        **a_, [&] { return talker_->received > before; }, a_->operator*().now() + std::chrono::minutes(4));
  }
  template <class Request>
  Request ask_session() {
    return a_->asked<Request>(*session_);
  }
  static control::Statistics statistics(RealHost& host, Protocol& protocol) {
    return host.asked<control::Statistics>(protocol);
  }

  std::optional<JoinedPair> pair_;
  std::unique_ptr<RealHost> a_;
  std::unique_ptr<RealHost> b_;
  Protocol* device_a_ = nullptr;
  Protocol* device_b_ = nullptr;
  Talker* talker_ = nullptr;
  Talker* echo_ = nullptr;
  Session* session_ = nullptr;
  std::vector<SessionRef> kept_;
};

TEST_P(Devices, a_message_goes_to_the_other_host_and_comes_back) {
  open();
  ASSERT_TRUE(round_trip(message(100, 7)));
  const Shepherd inside(a_->operator*().monitor());
  ASSERT_GE(talker_->last.size(), 100U);
  ASSERT_TRUE(talker_->last.flatten());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(talker_->last.bytes()[i], static_cast<std::byte>(7 + i));
}

TEST_P(Devices, messages_of_every_size_up_to_the_maximum_arrive_whole) {
  open();
  const std::size_t longest = ask_session<control::MaximumMessage>().size;
  const std::size_t best = ask_session<control::OptimumMessage>().size;
  EXPECT_EQ(longest, device() == "ETH" ? 1500U : device() == "IP" ? 65515U : 65507U);
  EXPECT_EQ(best, device() == "ETH" ? 1500U : device() == "IP" ? 1480U : 1472U);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{45}, std::size_t{46}, std::size_t{47}, std::size_t{512}, best - 1,
        best, best + 1, std::size_t{20288}, std::size_t{20289}, longest - 1, longest}) {
    if (size > longest) continue;
    ASSERT_TRUE(round_trip(message(size, static_cast<std::uint8_t>(size)))) << size;
    const Shepherd inside(a_->operator*().monitor());
    ASSERT_GE(talker_->last.size(), size);
    std::vector<std::byte> bytes(size);
    talker_->last.copy_to(bytes);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], static_cast<std::byte>(size + i)) << size << " at " << i;
  }
  a_->inside([&] { EXPECT_EQ(session_->push(message(longest + 1)), Errc::message_too_long); });
}

TEST_P(Devices, a_peer_that_sends_first_makes_a_session_with_its_address) {
  open();
  ASSERT_TRUE(round_trip(message(10)));
  ASSERT_TRUE(round_trip(message(10)));
  b_->inside([&] {
    ASSERT_EQ(echo_->announced.size(), 1U);
    EXPECT_EQ(echo_->announced[0].protocol, kEcho);
    EXPECT_EQ(echo_->announced[0].remote.host, kA);
  });
  EXPECT_EQ(statistics(*b_, *device_b_).sessions, 1U);
}

TEST_P(Devices, each_protocol_number_has_its_own_messages) {
  Talker* other_a = nullptr;
  Talker* other_b = nullptr;
  SessionRef second;
  b_->inside([&] {
    other_b = &b_->keep(std::make_unique<Talker>(**b_, true));
    ASSERT_TRUE(device_b_->open_enable(*other_b, {kOther, {}, {}}));
    const Status taken = device_b_->open_enable(*other_b, {kEcho, {}, {}});
    EXPECT_EQ(taken.code(), Errc::name_taken);
  });
  open();
  a_->inside([&] {
    other_a = &a_->keep(std::make_unique<Talker>(**a_, false));
    ParticipantSet participants{kOther, {}, {}};
    participants.remote.host = kB;
    auto opened = device_a_->open(*other_a, participants);
    ASSERT_TRUE(opened);
    second = opened.value();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(session_->push(message(10)), Errc::ok);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(second->push(message(10)), Errc::ok);
  });
  EXPECT_TRUE(a_->wait([&] { return talker_->received == 10 && other_a->received == 5; }));
  b_->inside([&] {
    EXPECT_EQ(echo_->received, 10U);
    EXPECT_EQ(other_b->received, 5U);
  });
  a_->inside([&] { second = {}; });
}

TEST_P(Devices, opening_twice_gives_the_same_session) {
  open();
  Session* const first = session_;
  open();
  EXPECT_EQ(first, session_);
}

TEST_P(Devices, what_nobody_has_enabled_is_counted_and_dropped) {
  open();
  ASSERT_TRUE(round_trip(message(10)));
  b_->inside([&] {
    device_b_->open_disable(*echo_, {kEcho, {}, {}});
    control::Request drop = control::DropIdle{};
    EXPECT_EQ(device_b_->control(drop), Errc::ok);
  });
  EXPECT_EQ(statistics(*b_, *device_b_).sessions, 0U);
  a_->inside([&] { EXPECT_EQ(session_->push(message(10)), Errc::ok); });
  EXPECT_TRUE(testing_lrpc::eventually([&] { return statistics(*b_, *device_b_).no_session == 1; }));
  b_->inside([&] { EXPECT_EQ(echo_->received, 1U); });
}

TEST_P(Devices, a_session_that_the_layer_above_refuses_leaves_nothing) {
  b_->inside([&] { echo_->refuses = true; });
  open();
  a_->inside([&] {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(session_->push(message(10)), Errc::ok);
  });
  EXPECT_TRUE(b_->wait([&] { return echo_->announced.size() == 3; }));
  const control::Statistics counted = statistics(*b_, *device_b_);
  EXPECT_EQ(counted.refused, 3U);
  EXPECT_EQ(counted.sessions, 0U);
}

TEST_P(Devices, a_burst_of_messages_leaves_no_buffer_behind) {
  open();
  const int blocks = testing_lrpc::long_tests() ? 100 : 25;
  for (int block = 0; block < blocks; ++block) {
    a_->inside([&] {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(session_->push(message(64)), Errc::ok);
    });
  }
  // Unreliable: the kernel drops packets when its socket buffers are full. But some must arrive.
  EXPECT_TRUE(a_->wait([&] { return talker_->received > 100; }));
  a_->start(1);
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    std::size_t in_use = 1;
    a_->inside([&] {
      talker_->last.clear();
      in_use = a_->operator*().pool().in_use();
    });
    return in_use == 0;
  }));
  ASSERT_TRUE(round_trip(message(10)));
  a_->inside([&] {
    talker_->last.clear();
    EXPECT_EQ(a_->operator*().pool().in_use(), 0U);
  });
  b_->engine().stop();
  EXPECT_EQ(b_->operator*().pool().in_use(), 0U);
}

TEST_P(Devices, nothing_is_allocated_for_a_message_once_warm) {
  open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(round_trip(message(64)));
  // Repeat only if other hosts' packets, or a pause of the machine, put more messages in transit than ever before.
  std::uint64_t allocated = 1;
  for (int tries = 0; tries < 10 && allocated != 0; ++tries) {
    const std::uint64_t before = a_->operator*().pool().allocations() + b_->operator*().pool().allocations();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(round_trip(message(64)));
    allocated = a_->operator*().pool().allocations() + b_->operator*().pool().allocations() - before;
  }
  EXPECT_EQ(allocated, 0U) << "in the last thousand round trips";
}

TEST_P(Devices, a_peer_that_vanishes_is_silence_and_nothing_else) {
  open();
  ASSERT_TRUE(round_trip(message(10)));
  b_.reset();
  pair_.reset();  // removes the veth pair
  a_->inside([&] {
    for (int i = 0; i < 10; ++i) (void)session_->push(message(10));
  });
  EXPECT_FALSE(a_->wait([&] { return talker_->received > 1; }, std::chrono::milliseconds(100)));
}

TEST_P(Devices, a_datagram_from_another_port_makes_no_session) {
  if (device() != "UDP") GTEST_SKIP() << device() << " has no ports";
  pair_->left.run([] {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    const sockaddr_in to = socket_address(kB, static_cast<std::uint16_t>(UdpOptions{}.ports.peers + kEcho));
    EXPECT_EQ(::sendto(fd, "hello", 5, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 5);
    ::close(fd);
  });
  open();
  ASSERT_TRUE(round_trip(message(10)));
  b_->inside([&] {
    EXPECT_EQ(echo_->announced.size(), 1U);
    EXPECT_EQ(echo_->received, 1U);
  });
  const control::Statistics counted = statistics(*b_, *device_b_);
  EXPECT_EQ(counted.malformed, 1U);
  EXPECT_EQ(counted.sessions, 1U);
}

TEST_P(Devices, two_callers_at_once_get_their_own_answers) {
  open();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const Shepherd inside(a_->operator*().monitor());
        const std::uint64_t before = talker_->received;
        if (session_->push(message(10)) != Errc::ok) ++wrong;
        if (!a_->engine().wait(
                **a_, [&] { return talker_->received > before; }, a_->operator*().now() + std::chrono::minutes(4)))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(, Devices,
                         testing::Combine(testing::Values("ETH", "IP", "UDP"),
                                          testing::Values(EngineKind::uring, EngineKind::epoll)),
                         [](const testing::TestParamInfo<Parameters>& of) {
                           return std::get<0>(of.param) +
                                  (std::get<1>(of.param) == EngineKind::uring ? "_uring" : "_epoll");
                         });

}  // namespace
}  // namespace lrpc::netrpc::test
