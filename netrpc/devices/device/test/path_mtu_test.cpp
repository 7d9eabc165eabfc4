// A question about the path MTU when the router answers late. The test is the router, behind a TUN device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "eventually.h"
#include "netrpc/devices/device/interface.h"
#include "netrpc/test_support/namespaces.h"

namespace lrpc::netrpc::test {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::eventually;

constexpr std::size_t kIp = 20;
constexpr std::size_t kIcmp = 8;
constexpr std::size_t kQuoted = kIp + 8;
using Answer = std::array<std::uint8_t, kIp + kIcmp + kQuoted>;

/// Stores the checksum of RFC 1071 as two bytes of a header.
void put_checksum(std::span<const std::uint8_t> over, std::uint8_t* at) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < over.size(); i += 2) sum += static_cast<std::uint32_t>(over[i] << 8 | over[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  at[0] = static_cast<std::uint8_t>(~sum >> 8);
  at[1] = static_cast<std::uint8_t>(~sum);
}

/// RFC 1191 §4: "fragmentation needed and DF set", as the router that should forward `packet` sends it.
Answer next_link_carries(std::uint16_t mtu, std::span<const std::uint8_t> packet) {
  Answer answer{0x45, 0, 0, Answer().size(), 0, 0, 0, 0, 64, 1, 0, 0, 10, 8, 0, 2};
  std::memcpy(&answer[16], &packet[12], 4);
  put_checksum(std::span(answer).first(kIp), &answer[10]);
  answer[kIp] = 3;
  answer[kIp + 1] = 4;
  answer[kIp + 6] = static_cast<std::uint8_t>(mtu >> 8);
  answer[kIp + 7] = static_cast<std::uint8_t>(mtu);
  std::memcpy(&answer[kIp + kIcmp], packet.data(), kQuoted);
  put_checksum(std::span(answer).subspan(kIp), &answer[kIp + 2]);
  return answer;
}

/// A host with one route, through 10.8.0.2, which is this test.
class PathMtu : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    where_.emplace();
    where_->run([&] {
      tun_ = UniqueFd(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
      ifreq request{};
      std::strncpy(request.ifr_name, "router", IFNAMSIZ - 1);
      request.ifr_flags = IFF_TUN | IFF_NO_PI;
      if (::ioctl(tun_.get(), TUNSETIFF, &request) != 0) tun_.reset();
    });
    if (!tun_) GTEST_SKIP() << "there is no /dev/net/tun";
    where_->ip("address add 10.8.0.1/24 dev router");
    where_->ip("link set router up");
    where_->ip("route add default via 10.8.0.2");
  }
  /// The next packet to the discard port, from its IP header on.
  [[nodiscard]] std::vector<std::uint8_t> next_question() const {
    std::vector<std::uint8_t> packet;
    EXPECT_TRUE(eventually([&] {
      packet.resize(2000);
      packet.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(tun_.get(), packet.data(), packet.size()), 0)));
      return packet.size() >= kQuoted && packet[0] == 0x45 && packet[9] == IPPROTO_UDP && packet[kIp + 3] == 9;
    }));
    return packet;
  }
  void answer(const Answer& answer) const {
    EXPECT_EQ(::write(tun_.get(), answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
  }

  static constexpr HostAddress kFar{0x0a090001};
  std::optional<Namespace> where_;
  UniqueFd tun_;
};

TEST_F(PathMtu, is_known_after_an_answer_that_comes_long_after_the_question) {
  where_->run([&] {
    const UniqueFd question = ask_path_mtu(kFar);
    const auto packet = next_question();
    EXPECT_EQ(packet.size(), 1500U);
    EXPECT_NE(packet[6] & 0x40, 0) << "a router might cut it";
    EXPECT_EQ(path_mtu(kFar), 1500U);
    answer(next_link_carries(576, packet));
    wait_for_answer(question, 240s);
    EXPECT_EQ(path_mtu(kFar), 576U);
  });
}

}  // namespace
}  // namespace lrpc::netrpc::test
