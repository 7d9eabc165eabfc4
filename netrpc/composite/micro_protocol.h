// Micro-protocols: objects of one property each, that a composite protocol is put together from (Bhatti and Schlichting
// §3.2). A kind says, for the check before anything runs, what it handles, raises, needs and excludes; an object says
// the same to the framework when it is made, and is held to it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "netrpc/composite/bag.h"
#include "netrpc/composite/events.h"

namespace lrpc::netrpc::composite {

class Framework;
class GroupSession;

/// A message on its way into the composite protocol (the paper's xMsg): for who verifies, while it handles the arrival.
struct Entering {
  Message* message = nullptr;
  SessionRef session;
  Direction direction = Direction::up;
  /// The framework's: its item, whether its header was malformed, and of requests and replies what they ask or answer.
  struct Entry {
    ItemRef item;
    bool malformed = false;
    CallId call = 0;
    ItemRef answers;
    std::optional<Errc> told;  ///< What who pushes is told, where that is not the item's outcome.
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
/// With calls, beyond the paper's: one has ended, by its reply, by MicroParts::end_call() or by its caller.
inline constexpr EventName<CallId> kCallEnded{"Call_Ended"};
/// The same at the server: a request has been answered, the protocol above has let go of it without an answer, or it
/// was deleted before it has left. Not while the protocol above is being given it.
inline constexpr EventName<ItemRef> kRequestEnded{"Request_Ended"};

/// Whether what comes from above are messages, or requests: of calls, or messages whose replies come up as messages.
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

/// A procedure that a micro-protocol exports, to be asked for what it knows (§3.2): its name and its type. Who exports
/// it and who calls it share one definition.
template <class Signature>
struct ProcedureName {
  std::string_view name;
};
class ProcedureBase {
 public:
  explicit ProcedureBase(const std::type_info& type) noexcept : signature(type) {}
  virtual ~ProcedureBase() = default;
  const std::type_info& signature;
};
template <class Signature>
class Procedure final : public ProcedureBase {
 public:
  explicit Procedure(std::function<Signature> calls) : ProcedureBase(typeid(Signature)), call(std::move(calls)) {}
  const std::function<Signature> call;
};

class MicroParts;

struct MicroKind {
  std::string name{};  ///< In capitals: MEMBERSHIP.
  std::string summary{};
  /// Events that it declares, and alone raises; procedures that others may call.
  std::vector<std::string_view> exports{};
  /// Events of others, or of the framework, that it handles; procedures of others that it calls.
  std::vector<std::string_view> imports{};
  std::vector<std::string_view> may_import{};  ///< The same, if somebody exports them.
  /// Of each list one must be there, too.
  std::vector<std::vector<std::string_view>> needs{};
  std::vector<std::string_view> excludes{};  ///< None of these may be.
  /// In the place of the framework's VERIFY. Only who verifies handles Message_Popped_To_CP and Message_Pushed_To_CP:
  /// it inserts what is to go on, and what it has not inserted when it returns is refused.
  bool verifies = false;
  /// In the place of the framework's mapping from attributes to headers. What travels is as said nevertheless.
  bool maps = false;
  /// Other than none: the composite protocol carries requests and replies, and no other messages, and knows groups.
  CallStyle style = CallStyle::none;
  /// With calls: no request is executed twice.
  bool at_most_once = false;
  std::vector<OptionDescription> options{};
  std::function<Result<std::unique_ptr<MicroProtocol>>(MicroParts&)> make{};
};

/// What is wrong with a composition, each with what to do; empty: nothing. A pure function.
[[nodiscard]] std::vector<ProtocolKind::MicroError> check_composition(const std::vector<const MicroKind*>& kinds);
/// Who exports what to whom, a line each: "Suspect_Host_Dead: ACK -> MEMBERSHIP". A pure function.
[[nodiscard]] std::vector<std::string> describe_composition(const std::vector<const MicroKind*>& kinds);

/// What a micro-protocol is made from, and says what it will do to. What it may not, or what contradicts another one's
/// declarations, makes the composition fail.
class MicroParts {
 public:
  MicroParts(Framework& framework, const MicroKind& kind, const Options& given) noexcept
      : options(given), framework_(framework), kind_(kind) {}

  const Options& options;
  [[nodiscard]] Host& host() const noexcept;
  [[nodiscard]] Events& events() const noexcept;
  [[nodiscard]] Bag& bag() const noexcept;

  /// Handles an event that the kind imports. `guard`: only where it says so.
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
    if (may(kind_.exports, name.name, "export"))
      procedures()[std::string(name.name)] = std::make_unique<Procedure<Signature>>(std::move(call));
  }
  /// In later(): a procedure that the kind imports, which lives as long as the composite protocol. Null: the
  /// composition has failed, or the kind may_import it, and nobody exports it.
  template <class Signature>
  [[nodiscard]] const std::function<Signature>* procedure(const ProcedureName<Signature>& name) {
    if (!may_import(name.name)) return nullptr;
    const auto& known = procedures()[std::string(name.name)];
    if (known != nullptr && known->signature == typeid(Signature))
      return &static_cast<const Procedure<Signature>&>(*known).call;
    if (known == nullptr && is_optional(name.name)) return nullptr;
    fail("procedure '" + std::string(name.name) + (known == nullptr ? "' is not there" : "' has another type"));
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
  /// The same for one who has to know that nobody else holds the message up: `asked` is called when all other bits are
  /// set, and sets this one, now or later. One in a composition may.
  [[nodiscard]] SendBit last_send_bit(std::function<void(const ItemRef&)> asked);
  /// Runs `look` when all micro-protocols have been made: for what others declare.
  void later(std::function<void(MicroParts&)> look);
  /// In later(): another one's attribute.
  template <class T>
  [[nodiscard]] PublicAttribute<T> public_attribute(const std::string& name) {
    std::string why_not;
    const PublicAttribute<T> found = attributes().find<T>(name, why_not);
    if (!why_not.empty()) fail(why_not);
    return found;
  }

  /// From now on the kind, which says `maps`, turns attributes into headers and back.
  void map_headers(HeaderMapping mapping);
  /// For that: any attribute, "FIFO.number", to be read and set.
  template <class T>
  [[nodiscard]] Attribute<T> mapped_attribute(const std::string& owner_and_name) {
    std::string why_not = kind_.maps ? "" : "its kind does not map attributes to headers";
    const Attribute<T> found = attributes().find_any<T>(owner_and_name, why_not);
    if (!why_not.empty()) fail(why_not);
    return found;
  }

  // ---- requests and replies ----
  [[nodiscard]] CallStyle style() const noexcept;
  /// One that a micro-protocol has made goes down as if it had come from above: NUMBER counts it, ACK sends it again.
  /// Called before it is inserted.
  static void mark_entered(const ItemRef& item) noexcept { item->entered_ = true; }
  /// A message from below is a request: it leaves as one, and what answers it comes back with Item::answers(). Called
  /// before it is inserted.
  void mark_request(const ItemRef& item) noexcept { item->request_ = true; }
  /// Nobody waits for the answer to this request any more, or somebody does again: control::Wanted tells the protocol
  /// above.
  static void mark_orphan(const ItemRef& item, bool orphan) noexcept { item->orphan_ = orphan; }
  /// In push style: a message that goes up is a reply of this call.
  void mark_reply(const ItemRef& item, CallId call) noexcept { item->call_ = call; }
  [[nodiscard]] bool is_open(CallId call) noexcept;  ///< It has not ended.
  /// It ends with call_aborted `limit` from now, if not before. False: there is no memory for that.
  [[nodiscard]] bool bound_call(CallId call, Duration limit) noexcept;
  /// Ends a call, if it has not ended. Its caller is told `outcome`, and if that is ok the reply.
  void end_call(CallId call, Errc outcome, Message reply = {}) noexcept;
  /// In push style: a call ends with the replies that are to go up now, and with nothing else. False: it has ended.
  [[nodiscard]] bool settle_call(CallId call) noexcept;
  /// The last reply of the call that was settled has gone up.
  void call_settled(CallId call) noexcept;
  /// What the members of a group have answered, to be told just before the call's end (Transaction::collated()).
  using Collate = std::function<void(CallId call, Transaction& user, const Message& reply)>;
  void collate(Collate tell);
  /// Whether a member's reply counts for the call, as Transaction::counts().
  [[nodiscard]] bool counts(CallId call, const Message& reply) noexcept;

  // ---- for a kind that verifies ----
  /// The item of a message that enters, with the attributes of its header. Null: it has none such (any more), or there
  /// is no memory.
  [[nodiscard]] ItemRef item_of(const Entering& entering) noexcept;
  /// Of a request that enters: its call, and the group that it is for. Null: it is for the peer of its session.
  [[nodiscard]] static CallId call_of(const Entering& entering) noexcept { return entering.entry->call; }
  [[nodiscard]] static GroupSession* group_of(const Entering& entering) noexcept;
  /// An item with the request, to go through `session`. Null: there is no memory.
  [[nodiscard]] ItemRef item_for(const Entering& entering, const SessionRef& session) noexcept;
  /// What who has pushed a request is told: that of items of item_for() is not.
  static void tell(const Entering& entering, Errc outcome) noexcept { entering.entry->told = outcome; }

 private:
  template <class... Parameters>
  [[nodiscard]] Raisable<Parameters...>* find(const std::string& name) {
    auto* const known = events().find<Parameters...>(name);
    if (known == nullptr) fail("event '" + name + "' has other parameters");
    return known;
  }
  [[nodiscard]] bool is_optional(std::string_view event) const;
  [[nodiscard]] bool may_import(std::string_view event);
  [[nodiscard]] bool may(const std::vector<std::string_view>& declared, std::string_view event, std::string_view verb);
  [[nodiscard]] AttributeTable& attributes() const noexcept;
  [[nodiscard]] std::map<std::string, std::unique_ptr<ProcedureBase>>& procedures() const noexcept;
  void fail(const std::string& why);

  Framework& framework_;
  const MicroKind& kind_;
};

/// MicroKind::make for a micro-protocol that is constructed from its parts.
template <class Micro>
Result<std::unique_ptr<MicroProtocol>> make_micro(MicroParts& parts) {
  return std::unique_ptr<MicroProtocol>(std::make_unique<Micro>(parts));
}

}  // namespace lrpc::netrpc::composite
