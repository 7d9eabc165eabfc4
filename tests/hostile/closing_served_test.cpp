// Descriptors that are slow to close: in a socket over which a server shall serve private clients, or instead of that
// socket. The thread that passes the socket does not wait for them, whether the server takes the socket or not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "busy_closers.h"
#include "chatter_service.h"
#include "closing.h"
#include "conformance_service.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/server.h"
#include "private_answer.h"
#include "raw_binding.h"
#include "refused_calls.h"

namespace testing_lrpc {
namespace {

namespace shim = lrpc::shim;
using Stubs = std::span<const lrpc::EntryStub>;

constexpr Stubs kStubs = Conformance::Entry_<ConformanceService>::kStubs_;
constexpr Stubs kCallbackStubs = Chatter::Callback::Entry_<ChatterListener>::kStubs_;
constexpr Stubs kNone;

class ToAServedSocket : public ClosingOfAKind {
 protected:
  /// Passes the socket to a server, which serves it, or refuses it if there are no entry stubs. Then the server ends.
  static void give(lrpc::UniqueFd socket, const lrpc::Pdl& pdl, Stubs stubs, void* impl) {
    lrpc::Server server;
    const lrpc::Status given = server.serve_over(std::move(socket), pdl, stubs, impl);
    EXPECT_TRUE(given || !stubs.empty() || given.code() == lrpc::Errc::invalid_argument) << given.error().message();
  }
  static constexpr std::array kBoth{true, false};
};
INSTANTIATE_TEST_SUITE_P(Kinds, ToAServedSocket, testing::ValuesIn(kSlow), kind);

TEST_P(ToAServedSocket, is_left_in_it_by_a_private_client) {
  ConformanceService service;
  for (const bool served : kBoth) {
    auto ends = shim::make_socket_pair();
    ASSERT_TRUE(ends);
    ASSERT_TRUE(leave_one(ends->second.get()));
    give(std::move(ends->first), Conformance::kPdl, served ? kStubs : kNone, &service);
  }
}

TEST_P(ToAServedSocket, is_given_in_its_place) {
  ConformanceService service;
  for (const bool served : kBoth) {
    SlowToClose* const slow = make_one();
    ASSERT_NE(slow, nullptr);
    lrpc::UniqueFd last = duplicate(slow->get());
    slow->give_away();
    give(std::move(last), Conformance::kPdl, served ? kStubs : kNone, &service);
  }
}

/// Whether this process has a descriptor of the socket with this inode number.
bool is_open_here(ino_t socket) {
  const std::string link = "socket:[" + std::to_string(socket) + "]";
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string() == link) return true;
  }
  return false;
}

/// The threads that close for this process's user are busy. So the socket stays open; threads for another user would
/// close it.
TEST(ServedSockets, that_hold_a_descriptor_are_closed_for_the_user_at_their_other_end) {
  bool left_open = false;
  EXPECT_TRUE(eventually([&] {
    const BusyClosers closers;
    auto ends = shim::make_socket_pair();
    const lrpc::UniqueFd any(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    struct stat served {};
    if (!ends || ::fstat(ends->first.get(), &served) != 0 || !LadenSocket::send(ends->second.get(), any.get()))
      return false;
    ConformanceService service;
    {
      lrpc::Server server;
      EXPECT_TRUE(Conformance::serve_over(server, std::move(ends->first), service));
      pollfd entry{ends->second.get(), 0, 0};  // the server hangs up, because clients may send no descriptor
      EXPECT_EQ(::poll(&entry, 1, kPatienceMs), 1);
    }
    left_open = is_open_here(served.st_ino);
    return left_open || BusyClosers::still();
  }));
  EXPECT_TRUE(left_open);
}

/// A client that offers to be called back. Its server is this test.
class ToACallback : public ToAServedSocket {
 protected:
  /// Offers with this kernel, or as on a kernel that cannot refuse descriptors (SO_PASSRIGHTS).
  void offer(bool refuses) {
    auto bell = shim::make_socket_pair();
    const auto region = shim::create_region(*shim::RegionLayout::of(Chatter::kPdl.classes));
    ASSERT_TRUE(bell && region);
    bell_ = *std::move(bell);
    end_.reset();
    auto ends =
        answered_pair(encoded(bound_answer(Chatter::kPdl.classes)), std::array{region->get(), bell_.second.get()});
    ASSERT_TRUE(ends);
    auto client = Chatter::Client::import_over(std::move(ends->first));
    ASSERT_TRUE(client) << client.error().message();
    client_.emplace(*std::move(client));
    const auto here = [this] { return lrpc::detail::StubAccess::offer_callback(client_->binding()); };
    taken_ = std::async(std::launch::async, [here, refuses]() -> lrpc::Result<lrpc::UniqueFd> {
      if (!refuses && !forget_pass_rights()) return lrpc::Errc::not_supported;
      return here();
    });
    const auto is_over = [this] { return taken_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
    ASSERT_TRUE(eventually([&] {
      auto came = shim::receive_bell(bell_.first.get());
      if (came && *came && (*came)->message == shim::BellMessage::callback) end_ = std::move((*came)->offered);
      return static_cast<bool>(end_) || is_over();
    }));
    if (!end_) GTEST_SKIP() << taken_.get().error().message() << ": " << kNoSuchKernel;
  }
  /// Leaves one in the other end. False: that end refuses it, as it should.
  bool leave_unless_refused(bool refuses) {
    const auto pair = shim::make_socket_pair();
    const bool can_refuse = refuses && pair && shim::refuse_descriptors(pair->first.get());
    const bool left = leave_one(end_.get());
    EXPECT_EQ(left, !can_refuse);
    return left;
  }
  /// The result of the offer.
  lrpc::Result<lrpc::UniqueFd> taken() { return taken_.get(); }

  std::pair<lrpc::UniqueFd, lrpc::UniqueFd> bell_;
  std::optional<Chatter::Client> client_;
  std::future<lrpc::Result<lrpc::UniqueFd>> taken_;
  shim::PeerSocket end_;  ///< The end that was offered.
};
INSTANTIATE_TEST_SUITE_P(Kinds, ToACallback, testing::ValuesIn(kSlow), kind);

TEST_P(ToACallback, is_left_in_its_socket_by_a_server_that_may_call_back) {
  ChatterListener listener;
  for (const bool refuses : kBoth) {
    for (const bool served : kBoth) {
      ASSERT_NO_FATAL_FAILURE(offer(refuses));
      if (IsSkipped()) return;
      shim::accept_offer(end_.get(), shim::BellMessage::callback);
      auto offered = taken();
      ASSERT_TRUE(offered) << offered.error().message();
      (void)leave_unless_refused(refuses);
      give(*std::move(offered), Chatter::Callback::kPdl, served ? kCallbackStubs : kNone, &listener);
    }
  }
}

}  // namespace
}  // namespace testing_lrpc
