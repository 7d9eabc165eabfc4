// The bytes of the binder protocol. One description per message serves both directions: `transfer` names the fields in
// wire order, and the archive it is given (binder_fields.h) either writes them or reads them.
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "binder_fields.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::shim {
namespace {

constexpr std::uint32_t kMagic = 0x4250'524c;  // "LRPB" in the order of the bytes
constexpr std::size_t kHeaderSize = 16;
constexpr std::size_t kLengthAt = 8;  ///< Offset of the body's length in the header.

constexpr std::array kTypeNames = {"ExportRequest",   "Exported",  "WithdrawRequest", "Withdrawn",   "ImportRequest",
                                   "BindRequest",     "BindReply", "Bound",           "ListRequest", "Listed",
                                   "DescribeRequest", "Described", "Failed",          "PollerPage",  "WakeAllocator"};
static_assert(kTypeNames.size() == std::variant_size_v<BinderBody>);
static_assert(std::is_same_v<std::variant_alternative_t<kTypeNames.size() - 1, BinderBody>, WakeAllocator>);

/// describe() has a text of its own for each code that exists (the compiler checks that), and one for all others.
bool known(Errc code) noexcept { return describe(code) != describe(static_cast<Errc>(UINT16_MAX)); }

/// An enum, a bool or a signed integer through the unsigned integer `Wire`.
template <std::unsigned_integral Wire, class Archive, class T>
void as(Archive& archive, T& value) {
  auto wire = static_cast<Wire>(value);
  archive.integer(wire);
  if constexpr (Archive::kReads) {
    if constexpr (std::is_same_v<T, bool>) archive.check(wire <= 1, "a flag is neither 0 nor 1");
    value = static_cast<T>(wire);
  }
}

void integers(auto& archive, auto&&... values) { (archive.integer(values), ...); }
void credentials(auto& archive, auto& who) {
  as<std::uint32_t>(archive, who.pid);
  integers(archive, who.uid, who.gid);
}

/// T is one of `Types`; it is const if the archive writes it.
template <class T, class... Types>
concept OneOf = (std::same_as<std::remove_const_t<T>, Types> || ...);

void transfer(auto& archive, OneOf<ClientCredentials> auto& client) {
  credentials(archive, client);
  as<std::uint8_t>(archive, client.groups_known);
  archive.check(client.groups_known <= GroupsKnown::all, "it knows groups in a way that does not exist");
  const std::size_t most = client.groups_known == GroupsKnown::none ? 0 : ClientCredentials::kMostGroups;
  archive.check(client.groups.size() <= most, "it has more groups than it may");
  archive.count(client.groups, most, sizeof(gid_t));
  for (auto& group : client.groups) archive.integer(group);
}
void transfer(auto& archive, OneOf<OwnedInterfaceId> auto& interface) {
  archive.name(interface.name);
  integers(archive, interface.major, interface.minor, interface.hash);
}
void transfer(auto& archive, OneOf<std::vector<AStackClass>> auto& classes) {
  archive.check(classes.size() <= limits::kMaxClasses, "it has too many A-stack classes");
  archive.count(classes, limits::kMaxClasses, 10);
  for (auto& astack_class : classes)
    integers(archive, astack_class.image_size, astack_class.tail_size, astack_class.count);
}
void transfer(auto& archive, OneOf<Gate> auto& gate) {
  as<std::uint8_t>(archive, gate);
  archive.check(gate <= Gate::sleep, "it names a gate that does not exist");
}
template <class Archive>
void transfer(Archive& archive, OneOf<std::optional<Principal>> auto& principal) {
  bool there = principal.has_value();
  as<std::uint8_t>(archive, there);
  if (!there) return;
  if constexpr (Archive::kReads) principal.emplace();
  archive.integer(principal->host);
  as<std::uint8_t>(archive, principal->authentication);
  archive.check(principal->authentication <= HostAuthentication::key,
                "it names a way to authenticate that does not exist");
  archive.name(principal->key);
}
void transfer(auto& archive, OneOf<Errc> auto& code) {
  as<std::uint16_t>(archive, code);
  archive.check(known(code), "it carries an error code that does not exist");
}

void transfer(auto& archive, OneOf<ExportRequest> auto& body) {
  archive.name(body.name);
  transfer(archive, body.interface);
  transfer(archive, body.classes);
  archive.text(body.text);
  archive.text(body.descriptors);
}
void transfer(auto& archive, OneOf<Exported, WithdrawRequest> auto& body) { archive.integer(body.export_id); }
void transfer(auto&, OneOf<Withdrawn, PollerPage, WakeAllocator> auto&) {}
void transfer(auto& archive, OneOf<ImportRequest> auto& body) {
  archive.name(body.name);
  transfer(archive, body.interface);
  archive.integer(body.timeout_ms);
  transfer(archive, body.gate);
  transfer(archive, body.principal);
}
void transfer(auto& archive, OneOf<BindRequest> auto& body) {
  integers(archive, body.export_id, body.binding_id);
  archive.nonce(body.nonce);
  transfer(archive, body.client);
  transfer(archive, body.gate);
  transfer(archive, body.principal);
}
void transfer(auto& archive, OneOf<BindReply> auto& body) {
  archive.integer(body.binding_id);
  transfer(archive, body.code);
  archive.reason(body.text);
}
void transfer(auto& archive, OneOf<Bound> auto& body) {
  archive.integer(body.binding_id);
  archive.nonce(body.nonce);
  credentials(archive, body.server);
  transfer(archive, body.classes);
}
void transfer(auto& archive, OneOf<ListRequest> auto& body) { archive.name(body.after); }
void transfer(auto& archive, OneOf<ListedName> auto& listed) {
  archive.name(listed.name);
  transfer(archive, listed.interface);
  credentials(archive, listed.server);
}
void transfer(auto& archive, OneOf<Listed> auto& body) {
  archive.count(body.names, kMaxBinderMessage, 26);  // 26: a ListedName whose two names are empty
  for (auto& listed : body.names) transfer(archive, listed);
  as<std::uint8_t>(archive, body.more);
}
void transfer(auto& archive, OneOf<DescribeRequest> auto& body) { archive.name(body.name); }
void transfer(auto& archive, OneOf<Described> auto& body) {
  transfer(archive, body.interface);
  archive.text(body.text);
  archive.text(body.descriptors);
}
void transfer(auto& archive, OneOf<Failed> auto& body) {
  transfer(archive, body.code);
  archive.check(body.code != Errc::ok, "it is a failure without a reason");
  archive.reason(body.text);
}

/// Reads the body of the alternative number `index` of BinderBody. Precondition: index < its size.
template <std::size_t... Index>
BinderBody read_body(BinderReader& reader, std::size_t index, std::index_sequence<Index...>) {
  BinderBody body;
  ((Index == index ? transfer(reader, body.emplace<Index>()) : void()), ...);
  return body;
}

}  // namespace

Result<std::vector<std::byte>> encode(const BinderMessage& message) {
  BinderWriter writer;
  const auto type = static_cast<std::uint16_t>(message.body.index() + 1);
  const std::uint32_t body_length = 0;  // known below
  integers(writer, kMagic, kBinderProtocolVersion, type, body_length, message.request);
  std::visit([&](const auto& body) { transfer(writer, body); }, message.body);

  const std::string name = kTypeNames[message.body.index()];
  if (writer.wrong() != nullptr) return Error{Errc::invalid_argument, name + ": " + writer.wrong()};
  if (writer.overflow())
    return Error{Errc::limit_reached, name + ": longer than " + std::to_string(kMaxBinderMessage) + " bytes"};
  writer.patch(kLengthAt, static_cast<std::uint32_t>(writer.size() - kHeaderSize));
  return writer.take();
}

Result<BinderMessage> decode(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxBinderMessage)
    return bad_message("longer than " + std::to_string(kMaxBinderMessage) + " bytes");
  if (bytes.size() < kHeaderSize) return bad_message("shorter than a header");
  BinderReader reader(bytes);
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t type = 0;
  std::uint32_t body_length = 0;
  BinderMessage message;
  integers(reader, magic, version, type, body_length, message.request);
  if (magic != kMagic) return bad_message("it does not begin with LRPB");
  if (version != kBinderProtocolVersion) {
    return bad_message("the peer speaks protocol version " + std::to_string(version) + ", this side speaks version " +
                       std::to_string(kBinderProtocolVersion) + ": install the same lrpc on both");
  }
  if (type == 0 || type > kTypeNames.size()) return bad_message("type " + std::to_string(type) + " does not exist");
  const std::size_t index = type - 1U;
  const std::string name = kTypeNames[index];
  if (body_length != reader.left()) return bad_message(name + ": its body is not as long as its header says");
  message.body = read_body(reader, index, std::make_index_sequence<std::variant_size_v<BinderBody>>());
  reader.check(reader.left() == 0, "bytes are left over behind it");
  if (reader.wrong() != nullptr) return bad_message(name + ": " + reader.wrong());
  return message;
}

bool valid_name(std::string_view name) noexcept {
  return !name.empty() && plausible_name(name) && name.find_first_of("@/") == std::string_view::npos;
}

Error not_a_name(std::string_view name, std::string_view where) {
  return {Errc::invalid_argument, "'" + std::string(name) + "'" + std::string(where) + " is not a name: 1 to " +
                                      std::to_string(kMaxNameLength) +
                                      " printable ASCII characters without space, '@' or '/'"};
}

}  // namespace lrpc::shim
