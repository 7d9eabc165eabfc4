// Garbage on the sockets of private bindings, in both directions.
#include <gtest/gtest.h>

#include <optional>

#include "bad_packets.h"
#include "bystander.h"
#include "conformance_service.h"
#include "length.h"
#include "lrpc/client.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;
namespace shim = lrpc::shim;

/// A server in this process, so that its leaks are visible, with an honest client, and room for others.
class BadMessages : public testing::Test {
 protected:
  void SetUp() override {
    auto client = Conformance::Client::import_over(private_socket());
    ASSERT_TRUE(client) << client.error().message();
    bystander_ = std::make_unique<Bystander>(*std::move(client));
    const lrpc::UniqueFd first = private_socket();  // opens what is opened only once
    before_ = open_descriptors() - 2;
  }
  void TearDown() override {
    if (bystander_ == nullptr) return;
    bystander_->call(50);
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= before_; }))
        << before_ << " descriptors were open, now " << open_descriptors();
    EXPECT_TRUE(eventually([&] { return server_.statistics().bindings == 1; }));
  }
  /// Returns the client's end of a new socket that the server serves.
  lrpc::UniqueFd private_socket() {
    auto ends = shim::make_socket_pair();
    if (!ends) throw std::runtime_error(ends.error().message());
    if (auto served = Conformance::serve_over(server_, std::move(ends->first), service_); !served) {
      throw std::runtime_error(served.error().message());
    }
    return std::move(ends->second);
  }
  /// The server's answer to a packet; nullopt: it hung up without an answer.
  static std::optional<shim::BinderMessage> answer(int socket) {
    auto received = shim::receive_message(socket, kPatience);
    if (!received) {
      EXPECT_EQ(received.code(), Errc::peer_gone) << received.error().message();
      return std::nullopt;
    }
    EXPECT_TRUE(received->has_value()) << "no answer at all";
    return std::move(*received);
  }
  static void expect_bad_message_and_hang_up(int socket, std::string_view what) {
    const auto said = answer(socket);
    ASSERT_TRUE(said) << what;
    const auto* failed = std::get_if<shim::Failed>(&said->body);
    ASSERT_NE(failed, nullptr) << what;
    EXPECT_EQ(failed->code, Errc::bad_message) << what;
    EXPECT_FALSE(failed->text.empty()) << what;
    EXPECT_FALSE(answer(socket)) << what << ": not hung up";
  }

  lrpc::Server server_;
  ConformanceService service_{&server_};
  std::unique_ptr<Bystander> bystander_;
  std::size_t before_ = 0;
};

TEST_F(BadMessages, to_a_server_are_answered_with_what_is_wrong_and_a_hang_up) {
  Random random(test_seed());
  for (const Packet& packet : undecodable_packets(random, encoded(import_request("")))) {
    const lrpc::UniqueFd socket = private_socket();
    ASSERT_TRUE(send_packet(socket.get(), packet));
    expect_bad_message_and_hang_up(socket.get(), std::to_string(packet.size()) + " bytes");
  }
}

TEST_F(BadMessages, of_another_version_are_answered_with_both_versions) {
  const lrpc::UniqueFd socket = private_socket();
  ASSERT_TRUE(send_packet(socket.get(), of_another_version(encoded(import_request("")))));
  const auto said = answer(socket.get());
  ASSERT_TRUE(said);
  const auto* failed = std::get_if<shim::Failed>(&said->body);
  ASSERT_NE(failed, nullptr);
  EXPECT_NE(failed->text.find("version 9"), std::string::npos) << failed->text;
  EXPECT_NE(failed->text.find("version 3"), std::string::npos) << failed->text;
}

TEST_F(BadMessages, with_flipped_bits_bind_or_are_refused) {
  Random random(test_seed());
  for (int i = 0; i < 300; ++i) {
    const lrpc::UniqueFd socket = private_socket();
    ASSERT_TRUE(send_packet(socket.get(), with_flipped_bits(random, encoded(import_request("")))));
    const auto said = answer(socket.get());
    ASSERT_TRUE(said);
    EXPECT_TRUE(std::holds_alternative<shim::Bound>(said->body) || std::holds_alternative<shim::Failed>(said->body));
  }
}

TEST_F(BadMessages, that_only_a_binder_sends_are_refused) {
  const std::vector<shim::BinderBody> bodies{
      shim::ExportRequest{}, shim::Exported{1},      shim::Withdrawn{},
      shim::BindRequest{},   shim::BindReply{},      shim::Bound{},
      shim::Listed{},        shim::Described{},      shim::Failed{Errc::not_permitted, "you"},
      shim::ListRequest{},   shim::DescribeRequest{}};
  for (const shim::BinderBody& body : bodies) {
    const lrpc::UniqueFd socket = private_socket();
    ASSERT_TRUE(send_packet(socket.get(), encoded({7, body, {}, {}})));
    const auto said = answer(socket.get());
    ASSERT_TRUE(said);
    const auto* failed = std::get_if<shim::Failed>(&said->body);
    ASSERT_NE(failed, nullptr) << body.index();
    EXPECT_EQ(failed->code, Errc::bad_message);
    EXPECT_EQ(said->request, 7U);
  }
}

/// The kernel gives them the user and group that stand for an unknown one.
TEST_F(BadMessages, without_credentials_because_they_came_before_the_socket_was_served_are_refused) {
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(send_packet(ends->second.get(), encoded(import_request(""))));
  ASSERT_TRUE(Conformance::serve_over(server_, std::move(ends->first), service_));
  const auto said = answer(ends->second.get());
  ASSERT_TRUE(said);
  const auto* failed = std::get_if<shim::Failed>(&said->body);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->code, Errc::bad_message);
  ASSERT_TRUE(send_packet(ends->second.get(), encoded(import_request(""))));
  const auto again = answer(ends->second.get());
  EXPECT_TRUE(again && std::holds_alternative<shim::Bound>(again->body)) << "the kernel knows who has sent this one";
}

TEST_F(BadMessages, with_unexpected_descriptors_do_not_keep_them_open) {
  const std::vector<int> one(1, STDERR_FILENO);
  const std::vector<int> three(3, STDERR_FILENO);
  const std::vector<int> four(4, STDERR_FILENO);
  const std::vector<int> many(200, STDERR_FILENO);
  for (int round = 0; round < 20; ++round) {
    for (const auto* fds : {&one, &three}) {
      const lrpc::UniqueFd socket = private_socket();
      ASSERT_TRUE(send_packet(socket.get(), encoded(import_request("")), *fds));
      ASSERT_TRUE(answer(socket.get()));
    }
    for (const auto* fds : {&four, &many}) {
      const lrpc::UniqueFd socket = private_socket();
      ASSERT_TRUE(send_packet(socket.get(), encoded(import_request("")), *fds));
      expect_bad_message_and_hang_up(socket.get(), "too many descriptors");
    }
    const lrpc::UniqueFd socket = private_socket();
    ASSERT_TRUE(send_packet(socket.get(), Packet(10), three));
    expect_bad_message_and_hang_up(socket.get(), "garbage with descriptors");
  }
}

TEST_F(BadMessages, that_are_empty_are_an_end) {
  for (int i = 0; i < 20; ++i) {
    const lrpc::UniqueFd socket = private_socket();
    ASSERT_TRUE(send_packet(socket.get(), {}));
    EXPECT_FALSE(answer(socket.get()));
  }
}

TEST_F(BadMessages, in_a_flood_that_nobody_reads_the_answers_of_leave_the_server_free) {
  const lrpc::UniqueFd socket = private_socket();
  const Packet mismatch = encoded([] {
    auto message = import_request("");
    std::get<shim::ImportRequest>(message.body).interface.name = "Otherwise";
    return message;
  }());
  for (int i = 0; i < 2000 && send(socket.get(), mismatch.data(), mismatch.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
       ++i) {
    if (i % 100 == 0) bystander_->call();
  }
  auto late = Conformance::Client::import_over(private_socket());
  ASSERT_TRUE(late) << late.error().message();
  EXPECT_TRUE(late->Null());
}

TEST_F(BadMessages, about_the_interface_say_which_side_is_to_change) {
  const auto refusal = [&](auto&& change) {
    lrpc::Pdl pdl = Conformance::kPdl;
    change(pdl);
    return lrpc::Binding::import_over(private_socket(), pdl);
  };
  const auto other = refusal([](lrpc::Pdl& pdl) { pdl.interface.name = "Otherwise"; });
  EXPECT_EQ(other.code(), Errc::interface_mismatch);
  EXPECT_NE(other.error().text.find("Otherwise"), std::string::npos);
  const auto major = refusal([](lrpc::Pdl& pdl) { pdl.interface.major = 9; });
  EXPECT_EQ(major.code(), Errc::version_mismatch);
  EXPECT_NE(major.error().text.find("Conformance 9."), std::string::npos) << major.error().text;
  EXPECT_EQ(refusal([](lrpc::Pdl& pdl) { pdl.interface.minor = 9; }).code(), Errc::version_mismatch);
  EXPECT_EQ(refusal([](lrpc::Pdl& pdl) { pdl.interface.hash ^= 1; }).code(), Errc::hash_mismatch);
}

/// Imports over a socket into which the server's side has already put `packet`.
lrpc::Result<Conformance::Client> import_from_one_who_says(std::span<const std::byte> packet,
                                                           std::span<const int> fds = {}, bool hang_up = false) {
  auto ends = answered_pair(packet, fds);
  if (!ends) return ends.error();
  if (hang_up) shutdown(ends->second.get(), SHUT_WR);
  return Conformance::Client::import_over(std::move(ends->first));
}

TEST_F(BadMessages, to_a_client_are_an_error_that_says_what_is_wrong) {
  Random random(test_seed());
  for (const Packet& packet : undecodable_packets(random, encoded(conformance_answer()))) {
    const auto client = import_from_one_who_says(packet);
    EXPECT_EQ(client.code(), Errc::bad_message) << packet.size();
    EXPECT_FALSE(client.error().text.empty());
  }
  const auto another = import_from_one_who_says(of_another_version(encoded(conformance_answer())));
  EXPECT_NE(another.error().text.find("version 9"), std::string::npos) << another.error().text;
}

TEST_F(BadMessages, to_a_client_with_too_few_or_too_many_descriptors_are_refused_and_closed) {
  for (std::size_t count = 0; count < 10; ++count) {
    const std::vector<int> fds(count, STDERR_FILENO);
    EXPECT_EQ(import_from_one_who_says(encoded(conformance_answer()), fds).code(), Errc::bad_message)
        << count << " descriptors";
  }
}

TEST_F(BadMessages, to_a_client_with_flipped_bits_bind_or_are_refused) {
  Random random(test_seed());
  for (int i = 0; i < 300; ++i) {
    const lrpc::UniqueFd region = good_region();
    auto bell = shim::make_socket_pair();
    ASSERT_TRUE(bell);
    const std::array<int, 2> fds{region.get(), bell->first.get()};
    const auto client = import_from_one_who_says(with_flipped_bits(random, encoded(conformance_answer())), fds);
    if (!client) {
      EXPECT_TRUE(client.code() == Errc::bad_message || client.code() == Errc::hash_mismatch)
          << client.error().message();
    }
  }
}

TEST_F(BadMessages, to_a_client_that_are_no_answer_are_refused) {
  for (const shim::BinderBody& body : std::vector<shim::BinderBody>{
           shim::Exported{1}, shim::Withdrawn{}, import_request("x").body, shim::BindRequest{}, shim::Listed{}}) {
    EXPECT_EQ(import_from_one_who_says(encoded({1, body, {}, {}})).code(), Errc::bad_message);
  }
  auto other_classes = conformance_answer();
  std::get<shim::Bound>(other_classes.body).classes.pop_back();
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(bell);
  EXPECT_EQ(import_from_one_who_says(encoded(other_classes), std::array{good_region().get(), bell->first.get()}).code(),
            Errc::hash_mismatch);
}

/// Otherwise the client would take the server for a process 0 of the user that stands for an unknown one.
TEST_F(BadMessages, to_a_client_from_nobody_knows_whom_are_refused) {
  for (const bool told : {false, true}) {
    auto bell = shim::make_socket_pair();
    ASSERT_TRUE(bell);
    const lrpc::UniqueFd region = good_region();
    auto ends = answered_pair(encoded(conformance_answer()), std::array{region.get(), bell->first.get()}, told);
    ASSERT_TRUE(ends);
    auto client = Conformance::Client::import_over(std::move(ends->first));
    EXPECT_EQ(client.code(), told ? Errc::ok : Errc::bad_message) << client.error().message();
    if (client) {
      EXPECT_EQ(client->binding().server().pid, getpid());
    }
  }
}

TEST_F(BadMessages, none_at_all_before_a_hang_up_are_peer_gone) {
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ends->second.reset();
  EXPECT_EQ(Conformance::Client::import_over(std::move(ends->first)).code(), Errc::peer_gone);
}

TEST_F(BadMessages, none_at_all_are_a_time_out) {
  auto ends = shim::make_socket_pair();
  ASSERT_TRUE(ends);
  EXPECT_EQ(Conformance::Client::import_over(std::move(ends->first), {.timeout = 100ms}).code(), Errc::timed_out);
}

}  // namespace
}  // namespace testing_lrpc
