// The encoding of the binder protocol: round trips, refusals, and hostile bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "length.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::shim {
namespace {

/// Makes random valid messages from a fixed seed.
class MessageMaker {
 public:
  explicit MessageMaker(unsigned seed) : random_(seed) {}

  BinderMessage any() { return of(number(std::variant_size_v<BinderBody> - 1)); }

  BinderMessage of(std::size_t type) {
    BinderMessage message;
    message.request = static_cast<std::uint32_t>(random_());
    switch (type) {
      case 0: message.body = ExportRequest{name(), interface(), classes(), text(300), text(300)}; break;
      case 1: message.body = Exported{random_()}; break;
      case 2: message.body = WithdrawRequest{random_()}; break;
      case 3: message.body = Withdrawn{}; break;
      case 4: message.body = ImportRequest{name(), interface(), number(0xffff'ffffU), gate(), principal()}; break;
      case 5: message.body = BindRequest{random_(), random_(), nonce(), client(), gate(), principal()}; break;
      case 6: message.body = BindReply{random_(), number(1) == 0 ? Errc::ok : Errc::not_permitted, text(1024)}; break;
      case 7: message.body = Bound{random_(), nonce(), who(), classes()}; break;
      case 8: message.body = ListRequest{name()}; break;
      case 9: message.body = listed(); break;
      case 10: message.body = DescribeRequest{name()}; break;
      case 11: message.body = Described{interface(), text(2000), text(500)}; break;
      case 12: message.body = Failed{Errc::name_taken, text(1024)}; break;
      case 13: message.body = PollerPage{}; break;
      default: message.body = WakeAllocator{}; break;
    }
    return message;
  }

  std::uint32_t number(std::uint64_t most) { return static_cast<std::uint32_t>(random_() % (most + 1)); }

 private:
  std::optional<Principal> principal() {
    if (number(1) == 0) return std::nullopt;
    const bool keyed = number(1) == 1;
    return Principal{number(0xffff'ffffU), keyed ? HostAuthentication::key : HostAuthentication::none,
                     keyed ? name() : std::string()};
  }
  std::string name() {
    std::string made(number(kMaxNameLength), ' ');
    for (char& c : made) c = static_cast<char>('!' + number('~' - '!'));
    return made;
  }
  std::string text(std::size_t most) {
    std::string made(number(most), ' ');
    for (char& c : made) c = static_cast<char>(number(255));
    return made;
  }
  OwnedInterfaceId interface() {
    return {name(), static_cast<std::uint16_t>(random_()), static_cast<std::uint16_t>(random_()), random_()};
  }
  std::vector<AStackClass> classes() {
    std::vector<AStackClass> made(number(limits::kMaxClasses));
    for (auto& c : made) c = {number(1U << 16), number(1U << 20), static_cast<std::uint16_t>(number(1024))};
    return made;
  }
  Gate gate() { return static_cast<Gate>(number(4)); }
  Credentials who() { return {static_cast<pid_t>(number(1 << 22)), number(0xffff'ffffU), number(0xffff'ffffU)}; }
  ClientCredentials client() {
    ClientCredentials made{who()};
    made.groups_known = static_cast<GroupsKnown>(number(2));
    if (made.groups_known == GroupsKnown::none) return made;
    made.groups.resize(number(ClientCredentials::kMostGroups));
    for (gid_t& group : made.groups) group = number(0xffff'ffffU);
    return made;
  }
  Nonce nonce() {
    Nonce made{};
    for (auto& byte : made) byte = static_cast<std::uint8_t>(random_());
    return made;
  }
  Listed listed() {
    Listed made;
    made.names.resize(number(20));
    for (auto& one : made.names) one = {name(), interface(), who()};
    made.more = number(1) == 1;
    return made;
  }

  std::mt19937_64 random_;
};

std::vector<std::byte> bytes_of(const BinderMessage& message) {
  auto bytes = encode(message);
  EXPECT_TRUE(bytes) << bytes.error().message();
  return bytes ? *bytes : std::vector<std::byte>();
}

TEST(BinderCodec, every_message_decodes_to_what_was_encoded) {
  MessageMaker make(1);
  for (int i = 0; i < 2000; ++i) {
    const BinderMessage message = make.any();
    const auto bytes = bytes_of(message);
    auto back = decode(bytes);
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->request, message.request);
    EXPECT_EQ(back->body.index(), message.body.index());
    if (std::holds_alternative<BindReply>(message.body) || std::holds_alternative<Failed>(message.body)) continue;
    EXPECT_EQ(bytes_of(*back), bytes);
  }
}

TEST(BinderCodec, fields_arrive_where_they_were_put) {
  BinderMessage message;
  message.request = 77;
  message.body = ImportRequest{"files", {"Files", 3, 4, 0x0102'0304'0506'0708}, ImportRequest::kForever, Gate::handoff};
  auto back = decode(bytes_of(message));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->request, 77U);
  const auto& import = std::get<ImportRequest>(back->body);
  EXPECT_EQ(import.name, "files");
  EXPECT_EQ(import.interface.name, "Files");
  EXPECT_EQ(import.interface.major, 3);
  EXPECT_EQ(import.interface.minor, 4);
  EXPECT_EQ(import.interface.hash, 0x0102'0304'0506'0708U);
  EXPECT_EQ(import.timeout_ms, ImportRequest::kForever);
  EXPECT_EQ(import.gate, Gate::handoff);
}

TEST(BinderCodec, a_clients_groups_arrive_and_those_left_out_are_told) {
  std::vector<gid_t> many(65'536);
  for (gid_t i = 0; i < many.size(); ++i) many[i] = 70'000 + i;
  const std::vector<gid_t> few = {7, 9};
  for (const auto& [told, known, carried] :
       {std::tuple{std::optional<std::vector<gid_t>>(), GroupsKnown::none, std::size_t{0}},
        std::tuple{std::optional(std::vector<gid_t>()), GroupsKnown::all, std::size_t{0}},
        std::tuple{std::optional(few), GroupsKnown::all, std::size_t{2}},
        std::tuple{std::optional(many), GroupsKnown::first, ClientCredentials::kMostGroups}}) {
    BindRequest request;
    request.client = ClientCredentials::of({1, 2, 3}, told);
    const auto back = decode(bytes_of({1, request, {}, {}}));
    ASSERT_TRUE(back) << back.error().message();
    const auto& client = std::get<BindRequest>(back->body).client;
    EXPECT_EQ(client.uid, 2U);
    EXPECT_EQ(client.groups_known, known);
    ASSERT_EQ(client.groups.size(), carried);
    if (told) {
      EXPECT_TRUE(std::ranges::equal(client.groups, std::span(*told).first(carried)));
    }
    EXPECT_TRUE(client.is_member_of(3)) << "its primary group";
    EXPECT_EQ(client.is_member_of(9), told == few);
  }
}

TEST(BinderCodec, more_groups_than_can_be_known_are_refused_both_ways) {
  constexpr std::size_t kKnownAt = 16 + 8 + 8 + 16 + 12;  // after header, ids, nonce, and pid, uid, gid
  BindRequest request;
  request.client.groups_known = GroupsKnown::all;
  request.client.groups.assign(ClientCredentials::kMostGroups, 7);
  auto bytes = bytes_of({1, request, {}, {}});
  ASSERT_EQ(std::to_integer<int>(bytes[kKnownAt]), 2);
  ASSERT_EQ(std::to_integer<int>(bytes[kKnownAt + 1]), 64);
  auto lying = bytes;
  lying[kKnownAt] = std::byte{3};
  EXPECT_EQ(decode(lying).code(), Errc::bad_message) << "known in another way";
  lying[kKnownAt] = std::byte{0};
  EXPECT_EQ(decode(lying).code(), Errc::bad_message) << "groups that nobody knows";
  lying = bytes;
  for (std::size_t i = 1; i <= 4; ++i) lying[kKnownAt + i] = std::byte{0xff};
  EXPECT_EQ(decode(lying).code(), Errc::bad_message) << "a count that the message cannot hold";
  lying = bytes;
  lying[kKnownAt + 1] = std::byte{65};  // and the bytes that belong to it
  lying.insert(lying.end(), 4, std::byte{0});
  for (unsigned i = 0; i < 4; ++i) lying[8 + i] = static_cast<std::byte>((lying.size() - 16) >> (8 * i));
  EXPECT_EQ(decode(lying).code(), Errc::bad_message) << "one too many";

  request.client.groups.push_back(7);
  EXPECT_EQ(encode({1, request, {}, {}}).code(), Errc::invalid_argument);
  request.client.groups = {7};
  request.client.groups_known = GroupsKnown::none;
  EXPECT_EQ(encode({1, request, {}, {}}).code(), Errc::invalid_argument);
}

TEST(BinderCodec, the_wire_is_little_endian_and_begins_with_the_magic) {
  const auto bytes = bytes_of({0x11223344, WithdrawRequest{0x0102}, {}, {}});
  const std::vector<unsigned> expected = {'L',  'R',  'P',  'B',  3, 0, 3, 0, 8, 0, 0, 0,
                                          0x44, 0x33, 0x22, 0x11, 2, 1, 0, 0, 0, 0, 0, 0};
  ASSERT_EQ(bytes.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
}

TEST(BinderCodec, another_protocol_version_is_refused_with_both_versions_named) {
  auto bytes = bytes_of({1, ListRequest{}, {}, {}});
  bytes[4] = std::byte{9};
  const auto back = decode(bytes);
  EXPECT_EQ(back.code(), Errc::bad_message);
  EXPECT_NE(back.error().text.find("version 9"), std::string::npos) << back.error().text;
  EXPECT_NE(back.error().text.find("version 3"), std::string::npos) << back.error().text;
}

TEST(BinderCodec, every_truncation_and_every_trailing_byte_is_refused) {
  MessageMaker make(2);
  for (std::size_t type = 0; type < std::variant_size_v<BinderBody>; ++type) {
    const auto bytes = bytes_of(make.of(type));
    for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 64) {
      EXPECT_EQ(decode(std::span(bytes).first(size)).code(), Errc::bad_message) << type << " cut at " << size;
      // Also with a header that agrees with the cut.
      if (size < 16) continue;
      auto cut = std::vector(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      for (unsigned i = 0; i < 4; ++i) cut[8 + i] = static_cast<std::byte>((size - 16) >> (8 * i));
      EXPECT_EQ(decode(cut).code(), Errc::bad_message) << type << " cut at " << size;
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode(longer).code(), Errc::bad_message);
    for (unsigned i = 0; i < 4; ++i) longer[8 + i] = static_cast<std::byte>((longer.size() - 16) >> (8 * i));
    EXPECT_EQ(decode(longer).code(), Errc::bad_message);
  }
}

TEST(BinderCodec, a_count_that_the_message_cannot_hold_allocates_nothing) {
  auto bytes = bytes_of({1, Listed{}, {}, {}});
  for (std::size_t i = 16; i < 20; ++i) bytes[i] = std::byte{0xff};
  EXPECT_EQ(decode(bytes).code(), Errc::bad_message);
}

TEST(BinderCodec, unknown_types_gates_codes_and_flags_are_refused) {
  auto type = bytes_of({1, Withdrawn{}, {}, {}});
  type[6] = std::byte{0};
  EXPECT_EQ(decode(type).code(), Errc::bad_message);
  type[6] = static_cast<std::byte>(std::variant_size_v<BinderBody> + 1);
  EXPECT_EQ(decode(type).code(), Errc::bad_message);

  auto gate = bytes_of({1, ImportRequest{"a", {}, 0, Gate::none}, {}, {}});
  gate.back() = static_cast<std::byte>(static_cast<unsigned>(Gate::sleep) + 1);
  EXPECT_EQ(decode(gate).code(), Errc::bad_message);

  auto code = bytes_of({1, Failed{Errc::system_error, ""}, {}, {}});
  code[16] = std::byte{200};
  EXPECT_EQ(decode(code).code(), Errc::bad_message);
  code[16] = std::byte{0};  // ok is not the code of a failure
  EXPECT_EQ(decode(code).code(), Errc::bad_message);

  auto flag = bytes_of({1, Listed{}, {}, {}});
  flag.back() = std::byte{2};
  EXPECT_EQ(decode(flag).code(), Errc::bad_message);
}

TEST(BinderCodec, names_with_control_characters_are_refused_both_ways) {
  EXPECT_EQ(encode({1, DescribeRequest{"a\nb"}, {}, {}}).code(), Errc::invalid_argument);
  EXPECT_EQ(encode({1, DescribeRequest{std::string(256, 'a')}, {}, {}}).code(), Errc::invalid_argument);
  auto bytes = bytes_of({1, DescribeRequest{"a_b"}, {}, {}});
  bytes[18] = std::byte{'\n'};
  EXPECT_EQ(decode(bytes).code(), Errc::bad_message);
}

TEST(BinderCodec, long_reasons_are_cut_between_characters) {
  std::string reason(kMaxReasonLength - 1, 'x');
  reason += "\xc3\xa4\xc3\xa4";
  auto back = decode(bytes_of({1, Failed{Errc::not_permitted, reason}, {}, {}}));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Failed>(back->body).text, std::string(kMaxReasonLength - 1, 'x'));
}

TEST(BinderCodec, a_message_over_the_limit_is_not_encoded) {
  EXPECT_EQ(encode({1, Described{{}, std::string(kMaxBinderMessage, 'x')}, {}, {}}).code(), Errc::limit_reached);
  EXPECT_TRUE(encode({1, Described{{}, std::string(kMaxBinderMessage - 68, 'x')}, {}, {}}));
}

TEST(BinderCodec, only_proper_names_are_valid) {
  EXPECT_TRUE(valid_name("files"));
  EXPECT_TRUE(valid_name(std::string(kMaxNameLength, 'n')));
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a@b"), std::string("a/b"), std::string("a\tb"),
        std::string("\x7f"), std::string("\xc3\xa4"), std::string(256, 'n')}) {
    EXPECT_FALSE(valid_name(bad)) << bad;
  }
}

TEST(BinderCodec, mutated_messages_are_refused_or_are_messages) {
  MessageMaker make(3);
  std::size_t survivors = 0;
  for (int round = 0; round < testing_lrpc::rounds(250); ++round) {
    const auto original = bytes_of(make.any());
    for (int mutation = 0; mutation < 100; ++mutation) {
      auto bytes = original;
      for (auto hits = make.number(3); hits < 4 && !bytes.empty(); ++hits) {
        // Half of the changes hit headers and the first lengths.
        const std::size_t reach = make.number(1) == 0 ? std::min<std::size_t>(bytes.size(), 40) : bytes.size();
        const std::size_t at = make.number(reach - 1);
        switch (make.number(3)) {
          case 0: bytes[at] ^= static_cast<std::byte>(1U << make.number(7)); break;
          case 1: bytes[at] = static_cast<std::byte>(make.number(255)); break;
          case 2: bytes[at] = std::byte{0xff}; break;
          default: bytes.resize(at); break;
        }
      }
      auto back = decode(bytes);
      if (!back) {
        EXPECT_EQ(back.code(), Errc::bad_message);
        continue;
      }
      ++survivors;
      EXPECT_EQ(bytes_of(*back), bytes);  // a decoded message encodes to exactly these bytes
    }
  }
  EXPECT_GT(survivors, 0U);
}

}  // namespace
}  // namespace lrpc::shim
