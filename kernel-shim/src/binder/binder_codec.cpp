// The bytes of the binder protocol. One description per message serves both directions: `transfer` names the fields in
// wire order, and the archive it is given (binder_fields.h) either writes them or reads them.
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "binder_fields.h"
#include "lrpc/shim/binder/binder_protocol.h"

namespace lrpc::shim {
namespace {

constexpr std::uint32_t kMagic = 0x4250'524c;  // "LRPB" in the order of the bytes
constexpr std::size_t kHeaderSize = 16;
constexpr std::size_t kLengthAt = 8;  ///< Of the body's length, in the header.

constexpr std::array kTypeNames = {"ExportRequest",   "Exported",  "WithdrawRequest", "Withdrawn",   "ImportRequest",
                                   "BindRequest",     "BindReply", "Bound",           "ListRequest", "Listed",
                                   "DescribeRequest", "Described", "Failed",          "PollerPage",  "WakeAllocator"};
static_assert(kTypeNames.size() == std::variant_size_v<BinderBody>);
static_assert(std::is_same_v<std::variant_alternative_t<kTypeNames.size() - 1, BinderBody>, WakeAllocator>);

/// describe() has a text for each code that there is, and the compiler sees to that.
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

template <class Archive>
void transfer(Archive& archive, Field<Archive, Nonce> nonce) {
  if constexpr (Archive::kReads) {
    archive.raw(std::as_writable_bytes(std::span(nonce)));
  } else {
    archive.raw(std::as_bytes(std::span(nonce)));
  }
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Credentials> who) {
  as<std::uint32_t>(archive, who.pid);
  archive.integer(who.uid);
  archive.integer(who.gid);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, ClientCredentials> client) {
  transfer<Archive>(archive, static_cast<Field<Archive, Credentials>>(client));
  as<std::uint8_t>(archive, client.groups_known);
  archive.check(client.groups_known <= GroupsKnown::all, "it knows groups in a way that does not exist");
  const std::size_t most = client.groups_known == GroupsKnown::none ? 0 : ClientCredentials::kMostGroups;
  archive.check(client.groups.size() <= most, "it has more groups than it may");
  archive.count(client.groups, most, sizeof(gid_t));
  for (auto& group : client.groups) archive.integer(group);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, OwnedInterfaceId> interface) {
  archive.name(interface.name);
  archive.integer(interface.major);
  archive.integer(interface.minor);
  archive.integer(interface.hash);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, std::vector<AStackClass>> classes) {
  archive.check(classes.size() <= limits::kMaxClasses, "it has too many A-stack classes");
  archive.count(classes, limits::kMaxClasses, 10);
  for (auto& astack_class : classes) {
    archive.integer(astack_class.image_size);
    archive.integer(astack_class.tail_size);
    archive.integer(astack_class.count);
  }
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Gate> gate) {
  as<std::uint8_t>(archive, gate);
  archive.check(gate <= Gate::sleep, "it names a gate that does not exist");
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, std::optional<Principal>> principal) {
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
template <class Archive>
void transfer(Archive& archive, Field<Archive, Errc> code) {
  as<std::uint16_t>(archive, code);
  archive.check(known(code), "it carries an error code that does not exist");
}

template <class Archive>
void transfer(Archive& archive, Field<Archive, ExportRequest> body) {
  archive.name(body.name);
  transfer<Archive>(archive, body.interface);
  transfer<Archive>(archive, body.classes);
  archive.text(body.text);
  archive.text(body.descriptors);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Exported> body) {
  archive.integer(body.export_id);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, WithdrawRequest> body) {
  archive.integer(body.export_id);
}
template <class Archive>
void transfer(Archive&, Field<Archive, Withdrawn>) {}
template <class Archive>
void transfer(Archive& archive, Field<Archive, ImportRequest> body) {
  archive.name(body.name);
  transfer<Archive>(archive, body.interface);
  archive.integer(body.timeout_ms);
  transfer<Archive>(archive, body.gate);
  transfer<Archive>(archive, body.principal);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, BindRequest> body) {
  archive.integer(body.export_id);
  archive.integer(body.binding_id);
  transfer<Archive>(archive, body.nonce);
  transfer<Archive>(archive, body.client);
  transfer<Archive>(archive, body.gate);
  transfer<Archive>(archive, body.principal);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, BindReply> body) {
  archive.integer(body.binding_id);
  transfer<Archive>(archive, body.code);
  archive.reason(body.text);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Bound> body) {
  archive.integer(body.binding_id);
  transfer<Archive>(archive, body.nonce);
  transfer<Archive>(archive, body.server);
  transfer<Archive>(archive, body.classes);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, ListRequest> body) {
  archive.name(body.after);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, ListedName> listed) {
  archive.name(listed.name);
  transfer<Archive>(archive, listed.interface);
  transfer<Archive>(archive, listed.server);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Listed> body) {
  archive.count(body.names, kMaxBinderMessage, 26);  // 26: a ListedName whose two names are empty
  for (auto& listed : body.names) transfer<Archive>(archive, listed);
  as<std::uint8_t>(archive, body.more);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, DescribeRequest> body) {
  archive.name(body.name);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Described> body) {
  transfer<Archive>(archive, body.interface);
  archive.text(body.text);
  archive.text(body.descriptors);
}
template <class Archive>
void transfer(Archive& archive, Field<Archive, Failed> body) {
  transfer<Archive>(archive, body.code);
  archive.check(body.code != Errc::ok, "it is a failure without a reason");
  archive.reason(body.text);
}
template <class Archive>
void transfer(Archive&, Field<Archive, PollerPage>) {}
template <class Archive>
void transfer(Archive&, Field<Archive, WakeAllocator>) {}

Error bad_message(std::string what) { return {Errc::bad_message, "bad binder message: " + std::move(what)}; }

/// Reads the body of the alternative number `index` of BinderBody. Precondition: index < its size.
template <std::size_t... Index>
BinderBody read_body(BinderReader& reader, std::size_t index, std::index_sequence<Index...>) {
  BinderBody body;
  ((Index == index ? transfer<BinderReader>(reader, body.emplace<Index>()) : void()), ...);
  return body;
}

}  // namespace

Result<std::vector<std::byte>> encode(const BinderMessage& message) {
  BinderWriter writer;
  writer.integer(kMagic);
  writer.integer(kBinderProtocolVersion);
  writer.integer(static_cast<std::uint16_t>(message.body.index() + 1));
  writer.integer(std::uint32_t{0});  // the body's length, known below
  writer.integer(message.request);
  std::visit([&](const auto& body) { transfer<BinderWriter>(writer, body); }, message.body);

  const std::string name = kTypeNames[message.body.index()];
  if (writer.wrong() != nullptr) return Error{Errc::invalid_argument, name + ": " + writer.wrong()};
  if (writer.overflow()) {
    return Error{Errc::limit_reached, name + ": longer than " + std::to_string(kMaxBinderMessage) + " bytes"};
  }
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
  reader.integer(magic);
  reader.integer(version);
  reader.integer(type);
  reader.integer(body_length);
  reader.integer(message.request);

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

std::string describe_principal(const Principal& principal) {
  std::string text = "host ";
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += std::to_string(principal.host >> shift & 0xff);
    if (shift != 0) text += '.';
  }
  if (principal.authentication == HostAuthentication::none) return text + " (not authenticated)";
  return text + " (key '" + principal.key + "')";
}

bool valid_name(std::string_view name) noexcept {
  return !name.empty() && plausible_name(name) && name.find_first_of("@/") == std::string_view::npos;
}

}  // namespace lrpc::shim
