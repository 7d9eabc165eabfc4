// Micro-protocols: a composite protocol is composed of them; each provides one property (Bhatti and Schlichting §3.2).
// A kind declares what it handles, raises, needs and excludes, so that a composition can be checked before anything
// runs. When the framework makes a micro-protocol, what its kind does not declare is an error.
#pragma once

#include <algorithm>
#include <any>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "netrpc/composite/bag.h"
#include "netrpc/composite/events.h"

namespace lrpc::netrpc::composite {

class Calls;
class Framework;
class GroupSession;

/// A message that enters (the paper's xMsg): for the micro-protocol that verifies, while it handles the arrival.
struct Entering {
  Message* message = nullptr;
  SessionRef session;
  Direction direction = Direction::up;
  /// For the framework: the message's item, whether its header was malformed, a request's call, the request that a
  /// reply answers.
  struct Entry {
    ItemRef item;
    bool malformed = false;
    CallId call = 0;
    ItemRef answers;
    std::optional<Errc> told;  ///< The outcome of the push or call, if not the item's.
  };
  Entry* entry = nullptr;
};

// ---- events that the framework raises (§3.3) ----

inline constexpr EventName<Entering> kMessagePoppedToCp{"Message_Popped_To_CP"};
inline constexpr EventName<ItemRef> kMessagePoppedFromCp{"Message_Popped_From_CP"};
inline constexpr EventName<Entering> kMessagePushedToCp{"Message_Pushed_To_CP"};
inline constexpr EventName<ItemRef> kMessagePushedFromCp{"Message_Pushed_From_CP"};
inline constexpr EventName<ItemRef> kMessageInsertedIntoBag{"Message_Inserted_Into_Bag"};
inline constexpr EventName<ItemRef> kMessageDeletedFromBag{"Message_Deleted_From_Bag"};
inline constexpr EventName<ItemRef> kMessageReadyToBeSent{"Message_Ready_To_Be_Sent"};
/// Not in the paper: a call has ended, by its reply, Calls::end(), its timeout or its caller.
inline constexpr EventName<CallId> kCallEnded{"Call_Ended"};
/// Not in the paper, at the server: a request has been answered, dropped by the protocol above without an answer, or
/// deleted before it left. Never raised while the protocol above is receiving the request.
inline constexpr EventName<ItemRef> kRequestEnded{"Request_Ended"};

/// What comes from above: messages; requests of calls; or messages that are requests, whose replies come up as
/// messages.
enum class CallStyle : std::uint8_t { none, call, push };

/// A micro-protocol of one composite protocol. Destroyed when no handler is called any more and the bag is empty,
/// before the framework is.
class MicroProtocol {
 public:
  MicroProtocol() = default;
  MicroProtocol(const MicroProtocol&) = delete;
  MicroProtocol& operator=(const MicroProtocol&) = delete;
  virtual ~MicroProtocol() = default;
};

/// Name and type of a procedure that a micro-protocol exports, so that others can ask for what it knows (§3.2). Its
/// exporter and its callers use the same definition.
template <class Signature>
struct ProcedureName {
  std::string_view name;
};
/// By their names; each a std::function<Signature>.
using Procedures = std::map<std::string, std::any>;

class MicroParts;

struct MicroKind {
  std::string name{};  ///< In capitals: MEMBERSHIP.
  std::string summary{};
  /// Events that it declares, and alone raises; procedures that others may call.
  std::vector<std::string_view> exports{};
  /// Events of others, or of the framework, that it handles; procedures of others that it calls.
  std::vector<std::string_view> imports{};
  std::vector<std::string_view> may_import{};  ///< As `imports`, but nobody has to export them.
  /// Of each list, the composition must contain at least one kind.
  std::vector<std::vector<std::string_view>> needs{};
  std::vector<std::string_view> excludes{};  ///< Kinds that the composition must not contain.
  /// Replaces the framework's VERIFY. Only the kind that verifies handles Message_Popped_To_CP and
  /// Message_Pushed_To_CP. It inserts the messages that continue; one that it has not inserted when it returns is
  /// refused.
  bool verifies = false;
  /// Replaces the framework's mapping of attributes to headers (map_headers()), whatever InHeader says.
  bool maps = false;
  /// If not `none`: the composite protocol carries only requests and replies, and can open sessions to groups.
  CallStyle style = CallStyle::none;
  /// With calls: no request is executed twice.
  bool at_most_once = false;
  std::vector<OptionDescription> options{};
  std::function<Result<std::unique_ptr<MicroProtocol>>(MicroParts&)> make{};
};

/// The errors of a composition, each with its remedy; empty: none. A pure function.
[[nodiscard]] std::vector<ProtocolKind::MicroError> check_composition(const std::vector<const MicroKind*>& kinds);
/// Who exports what to whom, a line each: "Suspect_Host_Dead: ACK -> MEMBERSHIP". A pure function.
[[nodiscard]] std::vector<std::string> describe_composition(const std::vector<const MicroKind*>& kinds);

/// A micro-protocol's interface to the framework. When it is made, it declares here what it handles and uses. The
/// composition fails if its kind does not allow that, or if it contradicts the declarations of another micro-protocol.
class MicroParts {
 public:
  MicroParts(Framework& framework, const MicroKind& kind, const Options& given) noexcept
      : options(given), framework_(framework), kind_(kind) {}

  const Options& options;
  [[nodiscard]] Host& host() const noexcept;
  [[nodiscard]] Events& events() const noexcept;
  [[nodiscard]] Bag& bag() const noexcept;
  [[nodiscard]] Calls& calls() const noexcept;

  /// Handles an event that the kind imports. With a `guard`, the handler runs only if the guard returns true.
  template <class... Parameters>
  void handle(const EventName<Parameters...>& event, typename Raisable<Parameters...>::Handler handler,
              std::type_identity_t<typename Raisable<Parameters...>::Guard> guard = nullptr) {
    if (!may_import(event.name)) return;
    if (auto* const known = find<Parameters...>(std::string(event.name)))
      known->add(std::move(handler), std::move(guard));
  }
  /// An event that the kind exports, to raise it.
  template <class... Parameters>
  [[nodiscard]] const Raisable<Parameters...>* exported(const EventName<Parameters...>& event) {
    return may(kind_.exports, event.name, "export") ? find<Parameters...>(std::string(event.name)) : nullptr;
  }
  /// An event of its own, which nobody else can handle or raise.
  template <class... Parameters>
  [[nodiscard]] const Raisable<Parameters...>* own(
      const EventName<Parameters...>& event, std::type_identity_t<typename Raisable<Parameters...>::Handler> handler) {
    auto* const known = find<Parameters...>(kind_.name + "." + std::string(event.name));
    if (known != nullptr) known->add(std::move(handler), nullptr);
    return known;
  }
  /// A procedure that the kind exports. Called under the monitor.
  template <class Signature>
  void exported_procedure(const ProcedureName<Signature>& name, std::type_identity_t<std::function<Signature>> call) {
    if (may(kind_.exports, name.name, "export")) procedures()[std::string(name.name)] = std::move(call);
  }
  /// Within later(): a procedure that the kind imports, which lives as long as the composite protocol. Null: the
  /// composition has failed, or the procedure is in `may_import` and nobody exports it.
  template <class Signature>
  [[nodiscard]] const std::function<Signature>* procedure(const ProcedureName<Signature>& name) {
    if (!may_import(name.name)) return nullptr;
    const std::any& known = procedures()[std::string(name.name)];
    const auto* const call = std::any_cast<std::function<Signature>>(&known);
    if (call != nullptr || (!known.has_value() && is_optional(name.name))) return call;
    fail("procedure '" + std::string(name.name) + (known.has_value() ? "' has another type" : "' is not there"));
    return nullptr;
  }
  template <class T>
  [[nodiscard]] Attribute<T> attribute(const std::string& name, Visibility seen = Visibility::of_owner,
                                       InHeader travels = InHeader::no) {
    std::string why_not;
    const Attribute<T> made = attributes().declare<T>(kind_.name, name, seen, travels, why_not);
    if (!why_not.empty()) fail(why_not);
    return made;
  }
  /// From now on no message leaves before this micro-protocol has set the bit.
  [[nodiscard]] SendBit send_bit();
  /// The same for a micro-protocol that decides last: `asked` is called when all other bits of a message are set, and
  /// sets this one, at once or later. Only one in a composition may have it.
  [[nodiscard]] SendBit last_send_bit(std::function<void(const ItemRef&)> asked);
  /// Runs `look` when all micro-protocols have been made, so that it finds what others declare.
  void later(std::function<void(MicroParts&)> look);
  /// Within later(): the public attribute of this name.
  template <class T>
  [[nodiscard]] PublicAttribute<T> public_attribute(const std::string& name) {
    std::string why_not;
    const PublicAttribute<T> found = attributes().find<T>(name, why_not);
    if (!why_not.empty()) fail(why_not);
    return found;
  }

  /// Sets how attributes become headers and back. Only for a kind with `maps`.
  void map_headers(HeaderMapping mapping);
  /// For a kind with `maps`: any attribute, by owner and name ("FIFO.number"), to read and set.
  template <class T>
  [[nodiscard]] Attribute<T> mapped_attribute(const std::string& owner_and_name) {
    std::string why_not = kind_.maps ? "" : "its kind does not map attributes to headers";
    const Attribute<T> found = attributes().find_any<T>(owner_and_name, why_not);
    if (!why_not.empty()) fail(why_not);
    return found;
  }

  // ---- requests and replies ----
  [[nodiscard]] CallStyle style() const noexcept;
  /// An item that a micro-protocol has made is treated as if it had come from above: NUMBER counts it, ACK retransmits
  /// it. Call this before inserting it.
  static void mark_entered(const ItemRef& item) noexcept { item->entered_ = true; }
  /// Marks a message from below as a request: it goes up as one, and its reply comes back with Item::answers(). Call
  /// this before inserting it.
  void mark_request(const ItemRef& item) noexcept { item->request_ = true; }
  /// Says whether this request is an orphan: nobody waits for its answer. control::Wanted tells the protocol above.
  static void mark_orphan(const ItemRef& item, bool orphan) noexcept { item->orphan_ = orphan; }
  /// In push style: marks a message that goes up as a reply of this call.
  void mark_reply(const ItemRef& item, CallId call) noexcept { item->call_ = call; }

  // ---- for a kind that verifies ----
  /// The item of a message that enters, with the attributes from its header. Takes the message, so call it once. Null:
  /// the header is malformed, the message is for a group (see item_for()), or there is no memory.
  [[nodiscard]] ItemRef item_of(const Entering& entering) noexcept;
  /// Of a request that enters: its call, and the group that it is for. Null: it is for the peer of its session.
  [[nodiscard]] static CallId call_of(const Entering& entering) noexcept { return entering.entry->call; }
  [[nodiscard]] static GroupSession* group_of(const Entering& entering) noexcept;
  /// An item with the request, to go through `session`. Null: there is no memory.
  [[nodiscard]] ItemRef item_for(const Entering& entering, const SessionRef& session) noexcept;
  /// Sets the outcome of the push or call of a request. The outcomes of item_for()'s items do not count.
  static void tell(const Entering& entering, Errc outcome) noexcept { entering.entry->told = outcome; }

 private:
  template <class... Parameters>
  [[nodiscard]] Raisable<Parameters...>* find(const std::string& name) {
    auto* const known = events().find<Parameters...>(name);
    if (known == nullptr) fail("event '" + name + "' has other parameters");
    return known;
  }
  [[nodiscard]] bool is_optional(std::string_view event) const {
    return std::ranges::find(kind_.may_import, event) != kind_.may_import.end();
  }
  [[nodiscard]] bool may_import(std::string_view event) {
    return is_optional(event) || may(kind_.imports, event, "import");
  }
  [[nodiscard]] bool may(const std::vector<std::string_view>& declared, std::string_view event, std::string_view verb);
  [[nodiscard]] AttributeTable& attributes() const noexcept;
  [[nodiscard]] Procedures& procedures() const noexcept;
  void fail(const std::string& why);

  Framework& framework_;
  const MicroKind& kind_;
};

/// MicroKind::make for a micro-protocol that is constructed from its parts.
template <class Micro>
Result<std::unique_ptr<MicroProtocol>> make_micro(MicroParts& parts) {
  return std::make_unique<Micro>(parts);
}
/// The same for one that does nothing: its kind says all.
inline Result<std::unique_ptr<MicroProtocol>> make_passive(MicroParts& /*parts*/) {
  return std::make_unique<MicroProtocol>();
}

}  // namespace lrpc::netrpc::composite
