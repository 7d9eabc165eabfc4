// The bytes of the binder protocol. One description per message serves both directions: `transfer` names the fields in
// wire order, and the archive it is given either writes them or reads them. What comes off a socket is hostile: the
// Reader checks every length against what is left before it touches or allocates anything, and keeps the first thing it
// found wrong.
#include <algorithm>
#include <concepts>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "lrpc/shim/binder_protocol.h"

namespace lrpc::shim {
namespace {

constexpr std::uint32_t kMagic = 0x4250'524c;  // "LRPB" in the order of the bytes
constexpr std::size_t kHeaderSize = 16;

constexpr std::array kTypeNames = {"ExportRequest",   "Exported",  "WithdrawRequest", "Withdrawn",   "ImportRequest",
                                   "BindRequest",     "BindReply", "Bound",           "ListRequest", "Listed",
                                   "DescribeRequest", "Described", "Failed",          "PollerPage",  "WakeAllocator"};
static_assert(kTypeNames.size() == std::variant_size_v<BinderBody>);
static_assert(std::is_same_v<std::variant_alternative_t<kTypeNames.size() - 1, BinderBody>, WakeAllocator>);

/// Printable ASCII without space, not too long. Empty is for the message's reader to judge.
bool plausible_name(std::string_view name) noexcept {
  return name.size() <= kMaxNameLength && std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

/// No `default`, so that the compiler asks for a code that was appended to Errc.
bool known(Errc code) noexcept {
  switch (code) {
    case Errc::ok:
    case Errc::call_failed:
    case Errc::call_aborted:
    case Errc::binding_revoked:
    case Errc::bad_procedure:
    case Errc::argument_out_of_range:
    case Errc::argument_too_long:
    case Errc::bad_handle:
    case Errc::exception_escaped:
    case Errc::bad_result:
    case Errc::result_too_long:
    case Errc::no_astack:
    case Errc::raised:
    case Errc::call_cancelled:
    case Errc::no_nameserver:
    case Errc::name_unknown:
    case Errc::name_taken:
    case Errc::interface_mismatch:
    case Errc::version_mismatch:
    case Errc::hash_mismatch:
    case Errc::not_permitted:
    case Errc::timed_out:
    case Errc::bad_message:
    case Errc::limit_reached:
    case Errc::remote_unavailable:
    case Errc::not_supported:
    case Errc::peer_gone:
    case Errc::invalid_argument:
    case Errc::system_error:
    case Errc::message_too_long:
    case Errc::host_unreachable: return true;
  }
  return false;
}

/// `text` cut to kMaxReasonLength, not inside a UTF-8 character.
std::string_view cut_reason(std::string_view text) noexcept {
  if (text.size() <= kMaxReasonLength) return text;
  std::size_t end = kMaxReasonLength;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

/// Appends fields to a packet. Bounded: what goes over kMaxBinderMessage is not written and remembered as an overflow.
class Writer {
 public:
  static constexpr bool kReads = false;

  template <std::unsigned_integral Int>
  void integer(const Int& value) {
    std::array<std::byte, sizeof(Int)> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
    raw(bytes);
  }
  void name(const std::string& value) {
    if (!plausible_name(value)) fail("a name is too long or has characters that names cannot have");
    integer(static_cast<std::uint8_t>(std::min(value.size(), kMaxNameLength)));
    raw(std::as_bytes(std::span(value.data(), std::min(value.size(), kMaxNameLength))));
  }
  void text(const std::string& value) { characters(value); }
  void reason(const std::string& value) { characters(cut_reason(value)); }
  void raw(std::span<const std::byte> bytes) {
    if (bytes.size() > kMaxBinderMessage - out_.size()) {
      overflow_ = true;
      return;
    }
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  /// The size of a sequence; the caller then writes its elements.
  template <class T>
  void count(const std::vector<T>& sequence, std::size_t /*most*/, std::size_t /*element_size*/) {
    integer(static_cast<std::uint32_t>(std::min<std::size_t>(sequence.size(), 0xffff'ffffU)));
  }
  void check(bool good, const char* wrong) {
    if (!good) fail(wrong);
  }

  void patch_body_length() {
    const auto length = static_cast<std::uint32_t>(out_.size() - kHeaderSize);
    for (std::size_t i = 0; i < sizeof length; ++i) out_[8 + i] = static_cast<std::byte>(length >> (8 * i));
  }
  [[nodiscard]] bool overflow() const noexcept { return overflow_; }
  [[nodiscard]] const char* wrong() const noexcept { return wrong_; }
  [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(out_); }

 private:
  void characters(std::string_view value) {
    if (value.size() > kMaxBinderMessage) {
      overflow_ = true;
      return;
    }
    integer(static_cast<std::uint32_t>(value.size()));
    raw(std::as_bytes(std::span(value.data(), value.size())));
  }
  void fail(const char* wrong) noexcept {
    if (wrong_ == nullptr) wrong_ = wrong;
  }

  std::vector<std::byte> out_;
  bool overflow_ = false;
  const char* wrong_ = nullptr;
};

/// Takes fields from hostile bytes. After the first fault every field reads as zero and nothing is touched any more.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  template <std::unsigned_integral Int>
  void integer(Int& value) {
    value = 0;
    const auto bytes = take(sizeof(Int), "it ends inside a number");
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value = static_cast<Int>(value | static_cast<Int>(std::to_integer<Int>(bytes[i]) << (8 * i)));
    }
  }
  void name(std::string& value) {
    std::uint8_t length = 0;
    integer(length);
    characters(value, length, "it ends inside a name");
    check(plausible_name(value), "a name has characters that names cannot have");
  }
  void text(std::string& value) {
    std::uint32_t length = 0;
    integer(length);
    characters(value, length, "it ends inside a text");
  }
  void reason(std::string& value) {
    std::uint32_t length = 0;
    integer(length);
    check(length <= kMaxReasonLength, "its reason is too long");
    if (wrong_ == nullptr) characters(value, length, "it ends inside its reason");
  }
  void raw(std::span<std::byte> bytes) {
    const auto from = take(bytes.size(), "it ends inside a fixed field");
    std::ranges::copy(from, bytes.begin());
  }
  /// Makes room for a sequence of at most `most` elements, of which each takes at least `element_size` bytes.
  template <class T>
  void count(std::vector<T>& sequence, std::size_t most, std::size_t element_size) {
    std::uint32_t size = 0;
    integer(size);
    check(size <= most && size <= left_.size() / element_size, "a count is higher than the message can hold");
    sequence.clear();
    if (wrong_ == nullptr) sequence.resize(size);
  }
  void check(bool good, const char* wrong) noexcept {
    if (good || wrong_ != nullptr) return;
    wrong_ = wrong;
    left_ = {};
  }

  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }
  [[nodiscard]] const char* wrong() const noexcept { return wrong_; }

 private:
  std::span<const std::byte> take(std::size_t size, const char* wrong) noexcept {
    check(size <= left_.size(), wrong);
    if (wrong_ != nullptr) return {};
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  void characters(std::string& value, std::size_t length, const char* wrong) {
    const auto bytes = take(length, wrong);
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::span<const std::byte> left_;
  const char* wrong_ = nullptr;
};

/// T& for the archive that reads, const T& for the one that writes.
template <class Archive, class T>
using Field = std::conditional_t<Archive::kReads, T&, const T&>;

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
BinderBody read_body(Reader& reader, std::size_t index, std::index_sequence<Index...>) {
  BinderBody body;
  ((Index == index ? transfer<Reader>(reader, body.emplace<Index>()) : void()), ...);
  return body;
}

}  // namespace

Result<std::vector<std::byte>> encode(const BinderMessage& message) {
  Writer writer;
  writer.integer(kMagic);
  writer.integer(kBinderProtocolVersion);
  writer.integer(static_cast<std::uint16_t>(message.body.index() + 1));
  writer.integer(std::uint32_t{0});  // the body's length, known below
  writer.integer(message.request);
  std::visit([&](const auto& body) { transfer<Writer>(writer, body); }, message.body);

  const std::string name = kTypeNames[message.body.index()];
  if (writer.wrong() != nullptr) return Error{Errc::invalid_argument, name + ": " + writer.wrong()};
  if (writer.overflow()) {
    return Error{Errc::limit_reached, name + ": longer than " + std::to_string(kMaxBinderMessage) + " bytes"};
  }
  writer.patch_body_length();
  return writer.take();
}

Result<BinderMessage> decode(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxBinderMessage)
    return bad_message("longer than " + std::to_string(kMaxBinderMessage) + " bytes");
  if (bytes.size() < kHeaderSize) return bad_message("shorter than a header");
  Reader reader(bytes);
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
