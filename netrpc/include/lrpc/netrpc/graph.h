// The protocol graph: a textual description, checked when it is composed (The x-Kernel §II.A: "a simple textual graph
// description language"; the composition tool creates protocols bottom-up, each with its capabilities for those below).
//
//     # SELECT-CHANNEL-VIPsize over FRAGMENT and VIPaddr (RPC in the x-Kernel, Figure 3 b)
//     eth      = ETH(interface = "veth0");
//     ip       = IP;
//     vipaddr  = VIPADDR over eth, ip;
//     fragment = FRAGMENT over vipaddr;
//     vipsize  = VIPSIZE over vipaddr, fragment;
//     channel  = CHANNEL over vipsize;
//     select   = SELECT(channels = 8) over channel;
//     orderly  = COMPOSITE { NUMBER; FIFO(patience = 50ms); } over ip;  # of micro-protocols (docs/COMPOSITE.md)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// The service that a protocol's sessions give. A protocol that needs a service can stand on any protocol that gives
/// it.
enum class Service : std::uint8_t {
  datagram,     ///< push(): unreliable delivery of messages between hosts.
  transaction,  ///< call(): a request and its reply.
};

/// The type of an option's value, checked with the graph.
enum class OptionType : std::uint8_t {
  text,      ///< "veth0" or veth0
  number,    ///< 8
  rate,      ///< 0.05: from 0 to 1
  duration,  ///< 10ms, 5s, 250us, 7ns
  list,      ///< [10.0.0.1, "a text"]: texts; may be empty
};

struct OptionDescription {
  std::string_view name{};
  OptionType type = OptionType::text;
  std::string_view summary{};  ///< With the unit and the default.
  bool required = false;
  /// For numbers and durations: the range, both ends included, written as in a graph. Empty: no bound,
  /// except that no duration may exceed a year.
  std::string_view least{};
  std::string_view most{};
};

/// The options that a graph gives an instance. They have been checked: types and ranges are right, none is unknown.
class Options {
 public:
  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  void set_list(const std::string& name, std::vector<std::string> items);
  [[nodiscard]] bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  [[nodiscard]] std::string text(std::string_view name, std::string_view fallback = {}) const;
  [[nodiscard]] std::uint64_t number(std::string_view name, std::uint64_t fallback) const;
  [[nodiscard]] double rate(std::string_view name, double fallback) const;
  [[nodiscard]] Duration duration(std::string_view name, Duration fallback) const;
  /// Empty: the option is not given, or has no items.
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const;
  /// The options as text, for display; a list is "[a, b]".
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& all() const noexcept { return values_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::vector<std::string>, std::less<>> lists_;
};

/// A micro-protocol inside of a composite protocol, as a description names it.
struct MicroDescription {
  std::string kind;
  Options options;
  int line = 0;
};

/// What an instance is made from.
struct InstanceParts {
  Host& host;
  std::string name;
  std::vector<Protocol*> below;  ///< In the graph's order; outlive the instance.
  Options options;
  std::vector<MicroDescription> inside{};
  bool many_ports_below = false;  ///< A peer of a protocol below is a host and a port.
};

/// A kind of protocol that graphs can name. Each protocol's folder has one function that returns its own.
struct ProtocolKind {
  std::string name{};  ///< In capitals: CHANNEL.
  std::string summary{};
  Service gives = Service::datagram;
  /// Gives the service of the protocol below, whichever that is. `gives` and the needs of its one `below` are ignored.
  bool transparent = false;
  /// Whether, with these options, a peer is a host and a port. Null: a peer is always a host alone.
  std::function<bool(const Options&)> many_ports{};
  /// Distinguishes two ports of one host. Other kinds cannot stand on a protocol with many ports.
  bool tells_ports_apart = false;
  /// The same, but its own peers are hosts alone: each proves its identity, whatever its port.
  bool identifies_hosts = false;
  /// `open` needs the peer's port: there is no default.
  bool needs_port = false;
  /// May execute a request any number of times. So may a protocol that passes calls on to it.
  bool repeats = false;
  struct Below {
    std::string role{};  ///< For errors: "the protocol for small messages".
    Service needs = Service::datagram;
  };
  std::vector<Below> below{};        ///< One entry each; empty for devices.
  bool last_below_repeats = false;   ///< A graph may name more than one of the last one.
  bool last_below_optional = false;  ///< A graph may omit the last one.
  std::vector<OptionDescription> options{};
  /// For a composite protocol: the micro-protocols that a graph may name between its braces. Not empty: the braces
  /// are required.
  struct Micro {
    std::string name{};
    std::vector<OptionDescription> options{};
  };
  std::vector<Micro> inside{};
  struct MicroError {
    std::size_t at = 0;  ///< The index of the micro-protocol at fault.
    std::string text{};  ///< The reason, and what to do.
  };
  /// Checks that these micro-protocols (names from `inside`) fit together. A pure function. Null: all do.
  std::function<std::vector<MicroError>(const std::vector<std::string>&)> check_inside{};
  struct Given {
    Service gives = Service::datagram;
    bool repeats = false;
  };
  /// What the protocol gives with these inside, instead of `gives` and `repeats`. Null: those two hold.
  std::function<Given(const std::vector<std::string>&)> inside_gives{};
  /// Returns the lines that a picture shows for these micro-protocols. Called after the check.
  std::function<std::vector<std::string>(const std::vector<std::string>&)> draw_inside{};
  std::function<Result<std::unique_ptr<Protocol>>(const InstanceParts&)> make{};
};

/// The kinds that a graph may use: passed explicitly, nothing registers itself.
class ProtocolKinds {
 public:
  ProtocolKinds& add(ProtocolKind kind);
  [[nodiscard]] const ProtocolKind* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<ProtocolKind>& all() const noexcept { return kinds_; }

 private:
  std::vector<ProtocolKind> kinds_;
};

/// One line of a description.
struct InstanceDescription {
  std::string name;
  std::string kind;
  Options options;
  std::vector<std::string> below;
  std::vector<MicroDescription> inside;
  std::vector<std::string> drawn_inside;  ///< The result of ProtocolKind::draw_inside.
  int line = 0;
  Service gives = Service::datagram;  ///< For a transparent kind: the service below.
  bool many_ports = false;            ///< A peer is a host and a port: protocols above must tell ports apart.
  bool many_ports_below = false;      ///< The same for a protocol below.
  bool repeats = false;               ///< It may execute a request several times.
};

/// A description that has been parsed and checked. A value.
///
///     description = { name "=" KIND [ options ] [ "{" { MICRO [ options ] ";" } "}" ]
///                     [ "over" name { "," name } ] ";" }
///     options     = "(" [ option { "," option } ] ")"
///     option      = name "=" ( value | "[" [ value { "," value } [ "," ] ] "]" )
///     value       = word | "\"" text "\""
///
/// Names begin with a letter and consist of letters, digits, '_', '-' and '.'; a word may have ':', '/', '+' and '%'
/// too. In a quoted text \" and \\ stand for " and \. Numbers are decimal or 0x..., durations carry a unit (ns, us, ms,
/// s). The protocols below an instance are defined before it, so that there are no cycles. A # begins a comment.
class GraphDescription {
 public:
  static constexpr std::size_t kMaxText = std::size_t{64} << 10;
  static constexpr std::size_t kMaxInstances = 1000;
  static constexpr std::size_t kMaxBelow = 64;   ///< Of one instance.
  static constexpr std::size_t kMaxInside = 64;  ///< Micro-protocols of one.
  static constexpr std::size_t kMaxWord = 255;   ///< Characters of a name or of an option's value.

  /// Errors: invalid_argument, whose text lists the faults (the first 50), one per line: "LINE: reason, what to do".
  static Result<GraphDescription> parse(std::string_view text, const ProtocolKinds& kinds);
  [[nodiscard]] const std::vector<InstanceDescription>& instances() const noexcept { return instances_; }
  /// A picture of boxes and lines, in text; higher protocols are above. A graph too large to draw becomes a list.
  [[nodiscard]] std::string draw_text() const;
  /// The same picture as an SVG document; empty if the graph is too large to draw.
  [[nodiscard]] std::string draw_svg() const;

 private:
  std::vector<InstanceDescription> instances_;
};

/// The protocol objects of one host. Owns them; destroys higher ones first. Under the host's monitor.
class Graph {
 public:
  /// Creates the instances bottom-up, inside the monitor (which the caller may hold). If an instance fails, destroys
  /// those made before, higher ones first. Errors: those of the factories, with the instance's line and name in front.
  static Result<Graph> compose(Host& host, const GraphDescription& description, const ProtocolKinds& kinds);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();
  /// The instance of that name; null if there is none.
  [[nodiscard]] Protocol* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<std::unique_ptr<Protocol>>& protocols() const noexcept { return protocols_; }

 private:
  Graph() = default;
  void destroy() noexcept;
  std::vector<std::unique_ptr<Protocol>> protocols_;
};

}  // namespace lrpc::netrpc
