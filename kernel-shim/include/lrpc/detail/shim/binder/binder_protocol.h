// The binder protocol: what libraries and nameserver say to each other over AF_UNIX SOCK_SEQPACKET sockets at bind
// time. Never on the call path. This file is the protocol's document: one struct a message, in the order of a binding's
// life.
//
// On the wire a message is one packet, little-endian, no padding:
//
//   header   magic u32 "LRPB" · version u16 · type u16 · body length u32 · request u32
//   type     1 + the place of the message's struct in BinderBody
//   body     the fields of the struct in the order declared here. Integers and enums as they are (pid as i32); Nonce:
//            16 bytes; Credentials: pid, uid, gid; ClientCredentials: those, groups_known, groups; a name: u8 length
//            and characters; a text: u32 length and bytes; a vector: u32 count and elements; an optional: u8 0 or 1,
//            and if 1 the value; AStackClass, OwnedInterfaceId and Principal: their fields
//
// A name (exported name, interface name) is at most kMaxNameLength printable ASCII characters without space; it may be
// empty where that has a meaning. Whether it can be exported is valid_name()'s to say.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

inline constexpr std::uint16_t kBinderProtocolVersion = 3;
inline constexpr std::size_t kMaxBinderMessage = 128 * 1024;  ///< Bytes of one message, header included.
inline constexpr std::size_t kMaxBinderFds = 3;               ///< Descriptors that travel with one message.
inline constexpr std::size_t kMaxNameLength = 255;  ///< Of an exported name: printable ASCII, no space, not empty.

inline constexpr std::size_t kMaxReasonLength = 1024;  ///< Of the text of a BindReply or Failed; encode() cuts it.

/// 128 random bits that stand for a binding towards third parties.
using Nonce = std::array<std::uint8_t, 16>;

/// Which gate a binding is to use. `sleep` is plain futexes, neither polling nor yielding; `none` is for bindings
/// inside one thread (tests, instruction counts).
enum class Gate : std::uint8_t { adaptive = 0, exchange = 1, handoff = 2, trap = 3, none = 4, sleep = 5 };

/// As options, tables and tests spell it; "?" for what is no gate.
[[nodiscard]] constexpr std::string_view name_of(Gate gate) noexcept {
  switch (gate) {
    case Gate::adaptive: return "adaptive";
    case Gate::exchange: return "exchange";
    case Gate::handoff: return "handoff";
    case Gate::trap: return "trap";
    case Gate::none: return "none";
    case Gate::sleep: return "sleep";
  }
  return "?";
}

/// Who somebody is, by the kernel's word.
struct Credentials {
  pid_t pid = 0;  ///< 0: of another process namespace, and without a number in this one.
  uid_t uid = 0;
  gid_t gid = 0;
};

/// How much is known of a client's supplementary groups.
enum class GroupsKnown : std::uint8_t {
  none = 0,   ///< Nothing: nobody has told.
  first = 1,  ///< There are more than ClientCredentials::kMostGroups: these are the first that the kernel named.
  all = 2,
};

/// Who asks for a binding, with supplementary groups where somebody has told:
///
/// - A client that lrpcd introduces: the groups that its process had when it connected to lrpcd (SO_PEERGROUPS).
/// - A private client: the groups that it had when it connected the socket or made the pair. Known only where that was
///   the very process, user and group that asks: a pair that the server's side has made tells nothing about a client.
/// - A caller of another host: none.
struct ClientCredentials : Credentials {
  static constexpr std::size_t kMostGroups = 64;  ///< That are carried; a process may have 65,536.

  /// Not sorted, and not with the primary one. Empty if none are known.
  std::vector<gid_t> groups = {};
  GroupsKnown groups_known = GroupsKnown::none;

  /// Whether its primary group or one of `groups` is this one. True is certain, false only if `groups_known` is all: so
  /// it is for who is let in, not for who is kept out.
  [[nodiscard]] bool is_member_of(gid_t group) const noexcept {
    return gid == group || std::ranges::find(groups, group) != groups.end();
  }
  /// `told` are the groups as the kernel has told them, none of them left out; nullopt: it has not.
  [[nodiscard]] static ClientCredentials of(const Credentials& who, const std::optional<std::vector<gid_t>>& told);
};

/// The name under which a machine's network domain is reached (LRPC §5.1). Only root and the nameserver's own user may
/// export it, whatever the policy: who has it is believed about callers of other hosts.
inline constexpr std::string_view kNetworkName = "lrpc.network";
/// The name of the directory that says which hosts export a name. Exported by the same users only: who has it decides
/// where `name@` leads.
inline constexpr std::string_view kDirectoryName = "lrpc.directory";
/// What the network domain exports for a process that is a protocol of its graph is this and a name: to be exported by
/// the same users only, because such a process believes its server.
inline constexpr std::string_view kUserPrefix = "lrpc.user.";
/// Names of lrpc's own begin so. No other host can import one.
inline constexpr std::string_view kOwnPrefix = "lrpc.";

/// Nobody of this machine: what stands for the credentials of a caller of another host. No process, no user.
inline constexpr Credentials kNobodyHere{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};

/// How the network domain knows the host that a call came from.
enum class HostAuthentication : std::uint8_t {
  none = 0,  ///< By the source address alone, which whoever shares the wire can forge.
  key = 1,   ///< By a key that the two hosts share.
};

/// Who calls from another host, by the word of this machine's network domain, not the kernel's.
struct Principal {
  std::uint32_t host = 0;  ///< IPv4 address, in host order.
  HostAuthentication authentication = HostAuthentication::none;
  std::string key = {};  ///< The key's name, if there is one.
  friend bool operator==(const Principal&, const Principal&) = default;
};
/// "host 10.1.2.3 (key 'lab')", "host 10.1.2.3 (not authenticated)".
std::string describe_principal(const Principal& principal);

/// An InterfaceId that owns its name.
struct OwnedInterfaceId {
  std::string name;
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint64_t hash = 0;
  [[nodiscard]] InterfaceId view() const noexcept { return {name, major, minor, hash}; }
};

/// Server → nameserver: make `name` importable. Answer: Exported or Failed.
struct ExportRequest {
  std::string name;
  OwnedInterfaceId interface;
  std::vector<AStackClass> classes;
  std::string text;  ///< The canonical declaration (Pdl::text).
  /// encode_descriptors() (packed_image.h); empty: too long for a message, and not to be called from other hosts.
  std::string descriptors = {};
};
struct Exported {
  std::uint64_t export_id = 0;
};

/// Server → nameserver: take the name back; bindings that exist live on. Answer: Withdrawn or Failed.
struct WithdrawRequest {
  std::uint64_t export_id = 0;
};
struct Withdrawn {};

/// Client → nameserver (or → server, over the socketpair of a private binding, with an empty name): bind to `name`.
/// Answer: Bound or Failed, at the latest about when `timeout_ms` is over.
struct ImportRequest {
  static constexpr std::uint32_t kForever = 0xffff'ffff;
  /// `wait` as timeout_ms says it.
  [[nodiscard]] static constexpr std::uint32_t wire_timeout(std::chrono::milliseconds wait) noexcept {
    if (wait == kNoLimit) return kForever;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(wait.count(), 0, kForever - 1));
  }
  std::string name;
  OwnedInterfaceId interface;
  std::uint32_t timeout_ms = 0;  ///< How long to wait for the name to appear; 0 not at all.
  Gate gate = Gate::adaptive;
  /// On whose behalf the network domain imports; not_permitted from anybody else.
  std::optional<Principal> principal = {};
};

/// Nameserver → server: a client asks to be bound. Descriptors: region, client's pidfd, server's end of the bell.
/// Answer: BindReply. The server maps the region before it accepts.
struct BindRequest {
  std::uint64_t export_id = 0;
  std::uint64_t binding_id = 0;
  Nonce nonce{};
  ClientCredentials client;
  Gate gate = Gate::adaptive;
  /// Set: the caller is not `client` (this machine's network domain) but somebody on another host.
  std::optional<Principal> principal = {};
};
/// Server → nameserver: the clerk's decision. code ok accepts. Must come within the nameserver's bound (5 s by
/// default). An accepted binding may still not come about (the client died or was told that time is over): then the
/// bell hangs up.
struct BindReply {
  std::uint64_t binding_id = 0;
  Errc code = Errc::ok;
  std::string text;
};

/// → client: the binding exists. Descriptors: region, server's pidfd, client's end of the bell.
/// Over a private socketpair the pidfd is left out; the peer is known by its message's kernel-written credentials.
struct Bound {
  std::uint64_t binding_id = 0;
  Nonce nonce{};
  Credentials server;
  std::vector<AStackClass> classes;
};

/// Anybody → nameserver: which names are exported. Answer: Listed.
struct ListRequest {
  std::string after;  ///< Only names behind this one in byte order; empty: from the first on.
};
struct ListedName {
  std::string name;
  OwnedInterfaceId interface;
  Credentials server;
};
struct Listed {
  std::vector<ListedName> names;  ///< In byte order.
  bool more = false;              ///< The rest did not fit: ask again with `after` the last of these names.
};

/// Anybody → nameserver: the canonical declaration behind a name. Answer: Described or Failed.
struct DescribeRequest {
  std::string name;
};
struct Described {
  OwnedInterfaceId interface;
  std::string text;
  std::string descriptors = {};  ///< As exported; hostile, like everything that a server says.
};

/// The answer to a request that could not be granted.
struct Failed {
  Errc code = Errc::system_error;
  std::string text;  ///< For a person; at most kMaxReasonLength bytes.
};

/// Nameserver → server, unasked, after its first export: the page that the two share (allocator_page.h). Descriptor:
/// the page. No answer. A server that never gets one polls by its own rule.
struct PollerPage {};
/// Server → nameserver: this server has calls to poll for, and its page says that the allocator sleeps. No answer.
struct WakeAllocator {};

/// Every message of the protocol. The order is the wire's: append, never reorder.

using BinderBody =
    std::variant<ExportRequest, Exported, WithdrawRequest, Withdrawn, ImportRequest, BindRequest, BindReply, Bound,
                 ListRequest, Listed, DescribeRequest, Described, Failed, PollerPage, WakeAllocator>;

/// One message: `request` ties an answer to its request (chosen by the asker, echoed in the answer).
struct BinderMessage {
  std::uint32_t request = 0;
  BinderBody body;
  std::vector<UniqueFd> fds;               ///< Owned by the message; at most kMaxBinderFds.
  std::optional<Credentials> sender = {};  ///< Filled on receipt where the socket has SO_PASSCRED.
  bool fds_lost = false;  ///< On receipt: descriptors came, this process had no free ones; `fds` is empty.
};

/// Encodes header and body (not the fds). Fails with limit_reached if it is over kMaxBinderMessage.
Result<std::vector<std::byte>> encode(const BinderMessage& message);
/// The reverse, over hostile bytes: every length, count and enum is checked. Fails with bad_message and says what is
/// wrong. The fds of the result are empty.
Result<BinderMessage> decode(std::span<const std::byte> bytes);

/// Sends one message with its descriptors. Does not take the fds (the caller's copy still owns them). Never raises
/// SIGPIPE. With `wait` it blocks until the packet is in the peer's queue, also on a non-blocking socket; with `wait`
/// false an unready socket is limit_reached. peer_gone if the peer has hung up. Nothing was sent on failure: packets
/// are whole.
Status send_message(int socket, const BinderMessage& message, bool wait = true);
/// The same, waiting at most so long: then limit_reached.
Status send_message(int socket, const BinderMessage& message, std::chrono::milliseconds timeout);
/// What becomes of descriptors that come with a message.
enum class Attachments : std::uint8_t {
  trusted,  ///< Received as they are: from the nameserver.
  none,     ///< There are none to come, and nobody but us reads from the socket: a message that has some is left there.
  taken_in,  ///< A stranger's, received on a thread of its own: socketpair ends, memfds and seccomp listeners.
};

/// Receives one message. nullopt: nothing there (only if the socket is non-blocking or `timeout` passed). peer_gone at
/// end of file. Every descriptor that came along is close-on-exec and owned by the message, or closed if it was too
/// many. If this process had no free descriptors for all of them, none are kept and the message is marked `fds_lost`:
/// whoever expects descriptors says limit_reached, whoever expects none treats them like any that should not have come.
/// bad_message: not the protocol, longer than kMaxBinderMessage, or with more or other descriptors than may come: the
/// packet is consumed, its descriptors closed, but with Attachments::none, where who has sent it is to be hung up on.
/// limit_reached: with Attachments::taken_in, too much of this stranger's is still being closed, or there is no thread.
Result<std::optional<BinderMessage>> receive_message(int socket, std::chrono::milliseconds timeout = kNoLimit,
                                                     Attachments attachments = Attachments::trusted,
                                                     const Stranger& stranger = {});
/// Who is at the other end of a connected AF_UNIX socket, or has made the pair.
Stranger stranger_at(int socket);
/// Closes what was taken in, on other threads.
void close_strangers(std::vector<UniqueFd> fds, const Stranger& stranger) noexcept;

/// A connected SEQPACKET pair, close-on-exec: the bell of a binding, or the two ends of a private one.
Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair();
/// Whether `fd`, which somebody else sent, is an end of such a pair: what can be a bell, or bound over.
[[nodiscard]] bool is_socket_pair_end(int fd) noexcept;
/// Whether it is a sealed client domain's listener, by its link in /proc: an ioctl could be answered by a file of the
/// sender's own making, whenever that likes. Of the calling thread's table of descriptors.
[[nodiscard]] bool is_seccomp_listener(int fd) noexcept;

/// Whether `name` can be exported: 1 to kMaxNameLength printable ASCII characters without space, '@' or '/'.
[[nodiscard]] bool valid_name(std::string_view name) noexcept;

/// ok, or interface_mismatch / version_mismatch / hash_mismatch with a text that names both sides and what to do.
/// Compatible: same name, same major, exported minor ≥ wanted minor, and the same hash.
Status compatible(const InterfaceId& wanted, const InterfaceId& exported);

/// The system's nameserver listens here.
inline constexpr const char* kSystemSocket = "/run/lrpc/lrpcd.sock";
/// Which nameserver_sockets() are, for the help of a program.
inline constexpr const char* kWhereSocketsAre =
    "$LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock";
/// The nameserver sockets to try, in order: $LRPC_SOCKET alone if set, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock (if set)
/// and kSystemSocket.
std::vector<std::string> nameserver_sockets();
/// Connects to the first that answers. no_nameserver says which were tried, why each failed, and how to start one.
/// A nameserver with a full queue is waited for 5 s, with `wait` false not at all; then it counts as not there.
Result<UniqueFd> connect_nameserver(std::string_view path = {}, bool wait = true);

/// The kernel's word on the process at the other end of a connected AF_UNIX socket.
Result<Credentials> peer_credentials(int socket);
/// Its supplementary groups, all of them, as of when it connected (SO_PEERGROUPS); nullopt if the kernel does not tell.
std::optional<std::vector<gid_t>> peer_groups(int socket);
/// A pidfd for it: SO_PEERPIDFD where present, else peer_pidfd_by_pid(). peer_gone if the process is no more.
Result<UniqueFd> peer_pidfd(int socket);
/// The fallback of kernels before 6.5: pidfd_open of the peer's pid, then a check that the peer has not hung up:
/// whoever still holds the socket has not given its pid back. Weaker where the peer left its end of the socket to
/// another process.
Result<UniqueFd> peer_pidfd_by_pid(int socket);
/// pidfd_open(2).
Result<UniqueFd> open_pidfd(pid_t pid);
/// The same for who has sent a message over a private socket. None if it has no number here: of such a peer only the
/// end of its descriptors is seen.
Result<UniqueFd> pidfd_of_sender(const Credentials& sender);
/// Whether the other end of a connected socket is closed everywhere. Never blocks.
[[nodiscard]] bool hung_up(int socket) noexcept;
/// 16 bytes of getrandom(2).
Nonce make_nonce();

}  // namespace lrpc::shim

// What programs that use the libraries name themselves.
namespace lrpc {
using shim::ClientCredentials;
using shim::Credentials;
using shim::Gate;
using shim::GroupsKnown;
using shim::HostAuthentication;
using shim::kNobodyHere;
using shim::make_socket_pair;
using shim::Principal;
}  // namespace lrpc
