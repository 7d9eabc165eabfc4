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
#include <compare>
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
/// Bytes of a declaration, with its descriptors, that leave room in a message for the rest of an ExportRequest, or of
/// the Described that repeats it, whatever that is.
inline constexpr std::size_t kMaxExportedText = kMaxBinderMessage - 2048;
inline constexpr std::size_t kMaxNameLength = 255;     ///< Of an exported name: printable ASCII, no space, not empty.
inline constexpr std::size_t kMaxReasonLength = 1024;  ///< Of the text of a BindReply or Failed; encode() cuts it.

/// 128 random bits that name a binding to third parties.
using Nonce = std::array<std::uint8_t, 16>;

/// The gate of a binding. `sleep` is plain futexes, without polling or yielding; `none` is for bindings inside one
/// thread (tests, instruction counts).
enum class Gate : std::uint8_t { adaptive = 0, exchange = 1, handoff = 2, trap = 3, none = 4, sleep = 5 };

/// The gate's name in options, tables and tests; "?" if it is no gate.
[[nodiscard]] constexpr std::string_view name_of(Gate gate) noexcept {
  constexpr std::array<std::string_view, 6> kNames{"adaptive", "exchange", "handoff", "trap", "none", "sleep"};
  const auto number = static_cast<std::size_t>(gate);
  return number < kNames.size() ? kNames[number] : "?";
}

/// A process's identity, as the kernel reports it: its effective user and group. In the nameserver's messages `pid` is
/// the number that the nameserver sees: number_of_introduced().
struct Credentials {
  pid_t pid = 0;  ///< 0: of another pid namespace, and without a number in this one.
  uid_t uid = 0;
  gid_t gid = 0;

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// How much is known of a client's supplementary groups.
enum class GroupsKnown : std::uint8_t {
  none = 0,   ///< Nothing is known.
  first = 1,  ///< There are more than ClientCredentials::kMostGroups: these are the first that the kernel named.
  all = 2,
};

/// Who asks for a binding, with supplementary groups if they are known:
///
/// - A client that lrpcd introduces: the groups that its process had when it connected to lrpcd (SO_PEERGROUPS).
/// - A private client: the groups that it had when it connected the socket or made the pair. Known only where that was
///   the very process, user and group that asks: a pair that the server's side has made tells nothing about a client.
/// - A caller of another host: none.
struct ClientCredentials : Credentials {
  static constexpr std::size_t kMostGroups = 64;  ///< The most in a message; a process may have 65,536.

  /// Not sorted, without the primary group. Empty if none are known.
  std::vector<gid_t> groups = {};
  GroupsKnown groups_known = GroupsKnown::none;

  /// Whether `group` is its primary group or one of `groups`. True is certain; false only if `groups_known` is all. So
  /// use it to let members in, not to keep members out.
  [[nodiscard]] bool is_member_of(gid_t group) const noexcept {
    return gid == group || std::ranges::find(groups, group) != groups.end();
  }
  /// `told`: all its groups, as the kernel reports them; nullopt: it does not.
  [[nodiscard]] static ClientCredentials of(const Credentials& who, const std::optional<std::vector<gid_t>>& told);
};

/// The name of a machine's network domain (LRPC §5.1). Only root and the nameserver's own user may export it, whatever
/// the policy says: its exporter is believed about callers of other hosts.
inline constexpr std::string_view kNetworkName = "lrpc.network";
/// The name of the directory, which says which hosts export a name. Only the same users may export it: its exporter
/// decides where `name@` leads.
inline constexpr std::string_view kDirectoryName = "lrpc.directory";
/// The network domain exports this prefix and a name for a process that is a protocol of its graph. Only the same users
/// may export such names, because that process trusts its server.
inline constexpr std::string_view kUserPrefix = "lrpc.user.";
/// The prefix of lrpc's own names. No other host can import one.
inline constexpr std::string_view kOwnPrefix = "lrpc.";

/// In place of the credentials of a caller of another host: no process and no user of this machine.
inline constexpr Credentials kNobodyHere{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};

/// How the network domain knows from which host a call came.
enum class HostAuthentication : std::uint8_t {
  none = 0,  ///< By the source address alone, which anybody on the wire can forge.
  key = 1,   ///< By a key that the two hosts share.
};

/// A caller of another host, as this machine's network domain reports it, not the kernel.
struct Principal {
  std::uint32_t host = 0;  ///< IPv4 address, in host order.
  HostAuthentication authentication = HostAuthentication::none;
  std::string key = {};  ///< The key's name, if there is one.
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 stumbles over a defaulted operator<=>
  friend auto operator<=>(const Principal&, const Principal&) = default;
};

/// An InterfaceId that owns its name.
struct OwnedInterfaceId {
  std::string name;
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint64_t hash = 0;
  static OwnedInterfaceId of(const InterfaceId& id) { return {std::string(id.name), id.major, id.minor, id.hash}; }
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

/// Server → nameserver: withdraw the name; existing bindings stay. Answer: Withdrawn or Failed.
struct WithdrawRequest {
  std::uint64_t export_id = 0;
};
struct Withdrawn {};

/// Client → nameserver (or → server, over the socketpair of a private binding, with an empty name): bind to `name`.
/// Answer: Bound or Failed, at the latest shortly after `timeout_ms`.
struct ImportRequest {
  static constexpr std::uint32_t kForever = 0xffff'ffff;
  /// `wait` in the form of timeout_ms.
  [[nodiscard]] static constexpr std::uint32_t wire_timeout(std::chrono::milliseconds wait) noexcept {
    if (wait == kNoLimit) return kForever;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(wait.count(), 0, kForever - 1));
  }
  std::string name;
  OwnedInterfaceId interface;
  std::uint32_t timeout_ms = 0;  ///< How long to wait for the name; 0: not at all.
  Gate gate = Gate::adaptive;
  /// For whom the network domain imports; from any other client not_permitted.
  std::optional<Principal> principal = {};
};

/// Nameserver → server: a client asks for a binding. Descriptors: region, client's pidfd, server's end of the bell.
/// Answer: BindReply. The server maps the region before it accepts.
struct BindRequest {
  std::uint64_t export_id = 0;
  std::uint64_t binding_id = 0;
  Nonce nonce{};
  ClientCredentials client;
  Gate gate = Gate::adaptive;
  /// If set, the caller is not `client` (this machine's network domain) but on another host.
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

/// Anybody → nameserver: which names are exported? Answer: Listed.
struct ListRequest {
  std::string after;  ///< Only names after this one in byte order; empty: from the first on.
};
struct ListedName {
  std::string name;
  OwnedInterfaceId interface;
  Credentials server;
};
struct Listed {
  std::vector<ListedName> names;  ///< In byte order.
  bool more = false;              ///< More did not fit: ask again, with the last of these names as `after`.
};

/// Anybody → nameserver: the canonical declaration behind a name. Answer: Described or Failed.
struct DescribeRequest {
  std::string name;
};
struct Described {
  OwnedInterfaceId interface;
  std::string text;
  std::string descriptors = {};  ///< As exported; not to be trusted, like all that a server says.
};

/// What a peer is told in place of an error's code. A system call that has failed here, for want of descriptors or
/// memory, is a limit to the peer: it may try again. system_error is only about the peer's own calls.
[[nodiscard]] constexpr Errc code_for_peer(Errc code) noexcept {
  return code == Errc::system_error ? Errc::limit_reached : code;
}

/// The answer to a request that could not be granted.
struct Failed {
  Errc code = Errc::system_error;
  std::string text;  ///< For people; at most kMaxReasonLength bytes.

  /// With code_for_peer(). `here`: where a system call has failed, for the text; "the server", for example.
  static Failed because_of(const Error& error, std::string_view here);
};

/// Nameserver → server, unasked, after its first export: the page that the two share (allocator_page.h). Descriptor:
/// the page. No answer. A server that never gets one polls by its own rule.
struct PollerPage {};
/// Server → nameserver: this server has calls to poll for, and its page says that the allocator sleeps. No answer.
struct WakeAllocator {};

/// All messages of the protocol. The order defines the types on the wire: append, never reorder.
using BinderBody =
    std::variant<ExportRequest, Exported, WithdrawRequest, Withdrawn, ImportRequest, BindRequest, BindReply, Bound,
                 ListRequest, Listed, DescribeRequest, Described, Failed, PollerPage, WakeAllocator>;

/// One message: `request` ties an answer to its request (chosen by the asker, echoed in the answer).
struct BinderMessage {
  std::uint32_t request = 0;
  BinderBody body;
  std::vector<UniqueFd> fds;               ///< Owned by the message; at most kMaxBinderFds.
  std::optional<Credentials> sender = {};  ///< Filled on receipt if the socket has SO_PASSCRED.
  bool fds_lost = false;  ///< On receipt: descriptors came, but this process had no free ones. `fds` is empty.
};

/// Encodes header and body, without the fds. Fails with limit_reached beyond kMaxBinderMessage.
Result<std::vector<std::byte>> encode(const BinderMessage& message);
/// The reverse, from untrusted bytes: every length, count and enum is checked. Fails with bad_message and says what is
/// wrong. The result has no fds.
Result<BinderMessage> decode(std::span<const std::byte> bytes);

/// Sends one message with copies of its descriptors; the message still owns them. Never raises SIGPIPE. Blocks until
/// the packet is in the peer's queue, even on a non-blocking socket, but at most `timeout`; then limit_reached.
/// peer_gone if the peer has hung up. On failure nothing was sent, because packets are sent whole.
Status send_message(int socket, const BinderMessage& message, std::chrono::milliseconds timeout = kNoLimit);
/// How to receive descriptors that come with a message.
enum class Attachments : std::uint8_t {
  trusted,   ///< From the nameserver: received without checks.
  none,      ///< None may come, and only we read from the socket: a message that has some is left there.
  taken_in,  ///< From a stranger: received on a thread of its own. Socketpair ends, memfds and seccomp listeners.
};

/// Receives one message; nullopt: there is none (only if the socket is non-blocking or `timeout` has passed). Its
/// descriptors are close-on-exec and owned by the message; those beyond the most are closed. If this process had too
/// few free descriptors, none are kept and the message is marked `fds_lost`: a receiver that expects descriptors then
/// reports limit_reached, and one that expects none treats them as unexpected.
///
/// Errors: peer_gone at end of file. bad_message: not the protocol, longer than kMaxBinderMessage, or with more or
/// other descriptors than may come. The packet is consumed and its descriptors are closed, except with
/// Attachments::none: then hang up on the sender. limit_reached, with Attachments::taken_in: too many of this
/// stranger's descriptors are still being closed, or there is no thread.
Result<std::optional<BinderMessage>> receive_message(int socket, std::chrono::milliseconds timeout = kNoLimit,
                                                     Attachments attachments = Attachments::trusted,
                                                     const Stranger& stranger = {});
/// Who is at the other end of a connected AF_UNIX socket, or has made the pair.
Stranger stranger_at(int socket);
/// Closes descriptors that were taken in, on other threads.
void close_strangers(std::vector<UniqueFd> fds, const Stranger& stranger) noexcept;

/// A connected SEQPACKET pair, close-on-exec: for the bell of a binding, or for a private binding.
Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair();
/// Whether `fd`, which a peer has sent, is an end of such a pair and so can be a bell, or carry a private binding.
[[nodiscard]] bool is_socket_pair_end(int fd) noexcept;
/// Whether `fd`, in the calling thread's table of descriptors, is a sealed client domain's listener. Asks its link in
/// /proc: an ioctl might reach a file of the sender's, which could answer as late as it likes.
[[nodiscard]] bool is_seccomp_listener(int fd) noexcept;
/// Whether that can be told: there is a /proc in which this thread finds itself.
[[nodiscard]] bool knows_seccomp_listeners() noexcept;

/// Whether `name` can be exported: 1 to kMaxNameLength printable ASCII characters without space, '@' or '/'.
[[nodiscard]] bool valid_name(std::string_view name) noexcept;
/// The error that says so of a name that cannot. `where`: where it stood, such as " in front of the '@'".
[[nodiscard]] Error not_a_name(std::string_view name, std::string_view where = {});

/// The interface's name and version: "Files 1.2".
[[nodiscard]] std::string version_of(const InterfaceId& interface);
/// ok, or interface_mismatch / version_mismatch / hash_mismatch with a text that names both sides and what to do.
/// Compatible: same name, same major, exported minor ≥ wanted minor, and the same hash.
Status compatible(const InterfaceId& wanted, const InterfaceId& exported);

/// Where the system's nameserver listens.
inline constexpr const char* kSystemSocket = "/run/lrpc/lrpcd.sock";
/// A description of nameserver_sockets(), for a program's help.
inline constexpr const char* kWhereSocketsAre =
    "$LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else /run/lrpc/lrpcd.sock";
/// The nameserver sockets to try, in order: only $LRPC_SOCKET if set; otherwise $XDG_RUNTIME_DIR/lrpc/lrpcd.sock (if
/// set) and kSystemSocket. `given`: if it is not empty, only that one.
std::vector<std::string> nameserver_sockets(std::string_view given = {});
/// Connects to the first that answers. Errors: no_nameserver; the text says which were tried, why each failed, and how
/// to start one. system_error: descriptors or memory lack for a connection; then the next one is not tried, because
/// this one may be there. Waits 5 s for a nameserver with a full queue, and not at all without `wait`; then that one
/// counts as absent.
Result<UniqueFd> connect_nameserver(std::string_view path = {}, bool wait = true);
/// The same for these sockets, not empty. From then on only the one that has answered is in `sockets`: a program whose
/// nameserver is being restarted must not go on with another one, which knows other names and is for other users.
Result<UniqueFd> connect_first_of(std::vector<std::string>& sockets, bool wait = true);
/// The one socket for a program that connects several times: `given`; if that is empty, the only one that there is to
/// try, or the first that answers. Never empty. Errors, and waits, as connect_nameserver() does.
Result<std::string> settled_nameserver(std::string_view given);

/// Has the kernel tell the senders of the messages that come from now on (SO_PASSCRED, unix(7)). Returns the number of
/// bytes that have come before: who sent those it may not know. INT_MAX if that cannot be told.
Result<int> ask_for_senders(int socket);
/// Whether the kernel has told who sent the message. `early`: it is among those bytes. For such a message the kernel
/// may report process 0 with the user and the group nobody, who may be anybody.
[[nodiscard]] bool sender_known(const BinderMessage& message, bool early) noexcept;
/// The process at the other end of a connected AF_UNIX socket, as the kernel reports it.
Result<Credentials> peer_credentials(int socket);
/// All its supplementary groups when it connected (SO_PEERGROUPS); nullopt if the kernel does not tell.
std::optional<std::vector<gid_t>> peer_groups(int socket);
/// Its pidfd: by SO_PEERPIDFD or, without that, by peer_pidfd_by_pid(). peer_gone if the process has ended.
Result<UniqueFd> peer_pidfd(int socket);
/// For kernels before 6.5: pidfd_open of the peer's pid, then a check that the peer has not hung up: while a process
/// holds the socket, its pid is not used again. Weaker if the peer has passed its end of the socket to another process.
Result<UniqueFd> peer_pidfd_by_pid(int socket);
/// pidfd_open(2).
Result<UniqueFd> open_pidfd(pid_t pid);
/// The same, for the sender of a message over a private socket. None if it has no pid here: of such a peer only the
/// close of its descriptors is seen.
Result<UniqueFd> pidfd_of_sender(const Credentials& sender);
/// The sender of a socket's next message, which stays queued, after ask_for_senders().
struct NextSender {
  std::optional<Credentials> who = {};  ///< None: the kernel does not tell (before Linux 6.5), or there is no message.
  UniqueFd pidfd = {};  ///< Of that very process, which may have ended. Empty: it has been reaped, or see `lacks`.
  int lacks = 0;        ///< errno, if there was no descriptor or no memory for the pidfd.
};
NextSender next_sender(int socket);
/// The number here of a process that the nameserver has introduced as number `told`, with its pidfd. `told` counts if
/// it is not 0 and the nameserver at the other end of the socket is seen in this PID namespace. Otherwise the kernel
/// tells, by the pidfd; 0 if the process has no number here, or /proc does not tell it. The number is wrong if the
/// nameserver is in a namespace below this one, and sees the process. Errors: system_error (no descriptor or memory to
/// ask with: two descriptors at a time).
Result<pid_t> number_of_introduced(int nameserver, pid_t told, int pidfd);
/// Whether there is something to read, or the other end has been closed. Never blocks.
[[nodiscard]] bool readable(int fd) noexcept;
/// Whether a pidfd's process has ended. As long as it has not, no other process has its number. Never blocks.
[[nodiscard]] inline bool has_ended(int pidfd) noexcept { return readable(pidfd); }
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
