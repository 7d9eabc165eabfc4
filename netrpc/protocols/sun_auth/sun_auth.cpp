#include "netrpc/protocols/sun_auth/sun_auth.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "header_room.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/wire.h"
#include "lrpc/netrpc/xdr.h"
#include "netrpc/protocols/sun_call/rpc_message.h"
#include "reply_layer.h"

namespace lrpc::netrpc {

namespace sun {
namespace {

constexpr std::size_t kMostMachine = 255;    ///< Bytes of a machine's name that a peer may send,
constexpr std::size_t kMostOurMachine = 64;  ///< and that we send.
constexpr std::uint32_t kMostGids = 16;

/// The credential of AUTH_SYS (RFC 5531, appendix A) and the empty verifier of each call, as they go over the wire.
/// `stamp`: any number.
std::vector<std::byte> encode_sys(const AuthSysOptions& options, std::uint32_t stamp) {
  XdrWriter body;
  body.word(stamp).text(options.machine).word(options.uid).word(options.gid);
  body.word(static_cast<std::uint32_t>(options.gids.size()));
  for (const std::uint32_t gid : options.gids) body.word(gid);

  XdrWriter whole;
  whole.word(static_cast<std::uint32_t>(AuthFlavor::sys)).opaque(body.bytes());
  whole.word(static_cast<std::uint32_t>(AuthFlavor::none)).opaque({});  // the verifier
  return whole.bytes();
}

/// Null: `body` is no credential of AUTH_SYS.
std::optional<control::ClaimedUser> decode_sys(std::span<const std::byte> body) noexcept {
  XdrReader reader(body);
  control::ClaimedUser user;
  reader.word();  // the stamp
  const std::string_view machine = reader.text(kMostMachine);
  user.uid = reader.word();
  user.gid = reader.word();
  const std::uint32_t gids = reader.word();
  if (gids > kMostGids || reader.rest().size() != 4 * std::size_t{gids} || !reader.right()) return std::nullopt;
  std::memcpy(user.machine.data(), machine.data(), std::min(machine.size(), user.machine.size() - 1));
  return user;
}

/// struct opaque_auth, taken off a message: its flavour and its bytes, which stay valid until the next one is taken.
struct OpaqueAuth {
  std::uint32_t flavor = 0;
  std::span<const std::byte> body;
  std::byte scratch[kMostAuthBytes];

  /// False: the message is too short, or the body is longer than kMostAuthBytes.
  [[nodiscard]] bool pop(Message& message) noexcept {
    Message::Header<8> raw;
    message.pop(raw);
    if (!raw) return false;
    WireReader reader(raw.bytes);
    flavor = reader.get<std::uint32_t>();
    const auto size = reader.get<std::uint32_t>();
    if (size > kMostAuthBytes) return false;
    body = {};
    if (size == 0) return true;
    const std::byte* const bytes = message.pop(xdr_padded(size), scratch);
    if (bytes != nullptr) body = {bytes, size};
    return bytes != nullptr;
  }
};

class SunAuth final : public ReplyLayer {
 public:
  SunAuth(Host& host, std::string name, Protocol& below, AuthFlavor flavor, std::vector<std::byte> credential)
      : ReplyLayer(host, std::move(name), below), flavor_(flavor), credential_(std::move(credential)) {}

  void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                 Duration timeout) noexcept override {
    if (request.pool() == nullptr) request = Message(host().pool());
    std::byte* const to = request.push(credential_.size());
    if (to == nullptr) return transaction.completed(Errc::limit_reached, {});
    std::memcpy(to, credential_.data(), credential_.size());
    ReplyLayer::pass_call(session, std::move(request), transaction, timeout);
  }

  void pass_call_demux(TransparentSession& session, Message request) noexcept override {
    std::optional<control::ClaimedUser> user;
    const Participant& asked = session.participants().local;
    const AuthStat stat = authenticate(request, asked.program != 0 && asked.procedure == 0, user);
    if (stat != AuthStat::ok) {
      ++counted.refused;
      request.clear();
      control::Request refuse = control::Refuse{Errc::not_permitted, static_cast<std::uint32_t>(stat)};
      if (session.lower().control(refuse) != Errc::ok) session.lower().reply(Message(host().pool()));
      return;
    }
    claimed_ = {&session, user ? &*user : nullptr};
    TransparentProtocol::pass_call_demux(session, std::move(request));
    if (claimed_.by == &session) claimed_ = {};
  }

  void pass_reply(TransparentSession& session, Message message) noexcept override {
    constexpr std::size_t kVerifier = 8;  // AUTH_NONE, no bytes
    if (std::byte* const to = push_reply_header(message, host().pool(), kVerifier)) std::memset(to, 0, kVerifier);
    TransparentProtocol::pass_reply(session, std::move(message));
  }

  Errc pass_control(TransparentSession& session, control::Request& request) noexcept override {
    if (auto* const user = std::get_if<control::ClaimedUser>(&request)) {
      if (claimed_.by != &session || claimed_.user == nullptr) return Errc::not_supported;
      *user = *claimed_.user;
      return Errc::ok;
    }
    return less_header(TransparentProtocol::pass_control(session, request), request, credential_.size());
  }
  Errc control(control::Request& request) noexcept override {
    return less_header(TransparentProtocol::control(request), request, credential_.size());
  }

 protected:
  Errc pass_completed(TransparentSession& /*session*/, Time /*begun*/, Errc outcome, Message& reply) noexcept override {
    OpaqueAuth verifier;
    if (outcome != Errc::ok || verifier.pop(reply)) return outcome;
    ++counted.malformed;
    return Errc::call_failed;
  }

 private:
  /// The request that is being passed up, and its user. While its server is outside the monitor, another one may
  /// replace it.
  struct Claimed {
    const TransparentSession* by = nullptr;
    const control::ClaimedUser* user = nullptr;  ///< Null: nobody.
  };

  /// Takes credential and verifier off. `ping`: a call of procedure 0, which needs no credential.
  [[nodiscard]] AuthStat authenticate(Message& request, bool ping, std::optional<control::ClaimedUser>& user) noexcept {
    OpaqueAuth auth;
    if (!auth.pop(request)) return AuthStat::bad_cred;
    const bool sys = auth.flavor == static_cast<std::uint32_t>(AuthFlavor::sys);
    if (sys && flavor_ == AuthFlavor::sys) {
      user = decode_sys(auth.body);
      if (!user) return AuthStat::bad_cred;
    } else if (!sys && auth.flavor != static_cast<std::uint32_t>(AuthFlavor::none)) {
      return AuthStat::rejected_cred;
    } else if (flavor_ == AuthFlavor::sys && !ping) {
      return AuthStat::too_weak;
    }
    return auth.pop(request) ? AuthStat::ok : AuthStat::bad_verf;
  }

  const AuthFlavor flavor_;
  const std::vector<std::byte> credential_;  ///< Credential and verifier of each call of this host.
  Claimed claimed_;
};

}  // namespace
}  // namespace sun

using sun::AuthFlavor, sun::SunAuth;

std::unique_ptr<Protocol> make_auth_none(Host& host, std::string name, Protocol& below) {
  std::vector<std::byte> nothing(16);  // a credential and a verifier of AUTH_NONE
  return std::make_unique<SunAuth>(host, std::move(name), below, AuthFlavor::none, std::move(nothing));
}

Result<std::unique_ptr<Protocol>> make_auth_sys(Host& host, std::string name, Protocol& below, AuthSysOptions options) {
  if (options.machine.empty()) options.machine = host.name().substr(0, sun::kMostOurMachine);
  if (options.machine.size() > sun::kMostOurMachine)
    return Error{Errc::invalid_argument, "machine must be at most " + std::to_string(sun::kMostOurMachine) + " bytes"};
  if (options.gids.size() > sun::kMostGids)
    return Error{Errc::invalid_argument, "gids must be at most " + std::to_string(sun::kMostGids)};
  return std::make_unique<SunAuth>(host, std::move(name), below, AuthFlavor::sys,
                                   sun::encode_sys(options, static_cast<std::uint32_t>(host.random())));
}

namespace {

/// "4,27"
Result<std::vector<std::uint32_t>> parse_gids(std::string_view text) {
  std::vector<std::uint32_t> gids;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    std::uint32_t gid = 0;
    const auto [rest, error] = std::from_chars(one.data(), one.data() + one.size(), gid);
    if (error != std::errc() || rest != one.data() + one.size())
      return Error{Errc::invalid_argument, "gids: '" + std::string(one) + "' is no group, write them as in 4,27"};
    gids.push_back(gid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return gids;
}

ProtocolKind auth_kind_called(std::string name, std::string summary) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .gives = Service::transaction,
          .tells_ports_apart = true,
          .below = {{"the SUN_CALL to whose calls it adds the credential", Service::transaction}}};
}

}  // namespace

ProtocolKind auth_none_kind() {
  ProtocolKind kind = auth_kind_called("AUTH_NONE", "Sun RPC without credentials");
  kind.make = [](const InstanceParts& parts) { return make_auth_none(parts.host, parts.name, *parts.below.front()); };
  return kind;
}

ProtocolKind auth_sys_kind() {
  ProtocolKind kind = auth_kind_called("AUTH_SYS", "Sun RPC with the names of machine and user, which nothing proves");
  kind.options = {
      {"machine", OptionType::text, "the name to send, at most 64 bytes; default: the host's"},
      {"uid", OptionType::number, "the user to send; default: this process's"},
      {"gid", OptionType::number, "the group to send; default: this process's"},
      {"gids", OptionType::text, "further groups, at most 16: \"4,27\"; default: none"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    AuthSysOptions options;
    const Options& given = parts.options;
    options.machine = given.text("machine");
    const std::uint64_t uid = given.number("uid", ::geteuid());
    const std::uint64_t gid = given.number("gid", ::getegid());
    if (uid > UINT32_MAX || gid > UINT32_MAX) return Error{Errc::invalid_argument, "uid and gid have 32 bits"};
    options.uid = static_cast<std::uint32_t>(uid);
    options.gid = static_cast<std::uint32_t>(gid);
    Result<std::vector<std::uint32_t>> gids = parse_gids(given.text("gids"));
    if (!gids) return gids.error();
    options.gids = std::move(*gids);
    return make_auth_sys(parts.host, parts.name, *parts.below.front(), std::move(options));
  };
  return kind;
}

}  // namespace lrpc::netrpc
