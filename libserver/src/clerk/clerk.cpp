#include "clerk.h"

#include <algorithm>
#include <new>
#include <utility>

#include "answer_time.h"
#include "bindings.h"
#include "introduction.h"

namespace lrpc::server {

std::chrono::milliseconds answer_time{10'000};  // how long a thread of the program waits

/// Pauses between attempts to connect, or to get a name back; they double from the first to the longest.
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2'000};
/// The most exports that are under way at a time while names come back.
constexpr std::ptrdiff_t kExportsAtOnce = 4;

Clerk::Clerk(std::string nameserver, Bindings& bindings, PollerGrant& grant, shim::Watcher& watcher)
    : nameserver_(std::move(nameserver)), bindings_(bindings), grant_(grant), watcher_(watcher), pause_(kFirstPause) {}

// ---- Requests to the nameserver, from the program's threads ----

/// The connection to the nameserver; a new one if there is none. Connects without the lock: that may take a while.
Result<std::shared_ptr<NameserverLink>> Clerk::linked() {
  std::vector<std::string> sockets;
  {
    std::lock_guard lock(mutex_);
    if (link_ != nullptr) return link_;
    sockets = sockets_;
  }
  if (sockets.empty()) sockets = shim::nameserver_sockets(nameserver_);
  auto socket = shim::connect_first_of(sockets);
  if (!socket) return socket.error();
  std::lock_guard lock(mutex_);
  if (link_ != nullptr) return link_;  // another thread was faster
  if (Status adopted = adopt_locked(*std::move(socket), std::move(sockets)); !adopted) return adopted.error();
  if (anything_missing_locked()) (void)watcher_.post(register_);
  return link_;
}

/// `at`: the path of the socket. From now on no other is tried.
Status Clerk::adopt_locked(UniqueFd socket, std::vector<std::string> at) {
  if (closed_) return Error{Errc::invalid_argument, "the server is being destroyed"};
  auto link = NameserverLink::make(std::move(socket), watcher_);
  auto watched =
      watcher_.watch(link->fd(), [this, link](shim::Watcher::Event event) { on_nameserver(link, event.id); });
  if (!watched) return watched.error();
  link->watch = *watched;
  link_ = std::move(link);
  sockets_ = std::move(at);
  return {};
}

/// Sends a request and waits for its answer. on_answer() takes a name back that is granted after the time is up.
Clerk::Answer Clerk::ask(NameserverLink& link, std::uint64_t export_id, shim::BinderMessage request) {
  const auto until = std::chrono::steady_clock::now() + answer_time;
  std::future<Answer> answer;
  {
    std::lock_guard lock(mutex_);
    if (link_.get() != &link) return Error{Errc::peer_gone, "the nameserver hung up"};
    request.request = ++last_request_;
    answer =
        asked_.emplace(request.request, Asked{export_id, std::promise<Answer>()}).first->second.waiting->get_future();
  }
  Status sent;
  try {
    sent = shim::send_message(link.fd(), request, answer_time);
  } catch (const std::bad_alloc&) {
    std::lock_guard lock(mutex_);
    asked_.erase(request.request);
    throw;
  }
  // After peer_gone the watcher's thread sees the end, too, and perhaps its reason, and answers the request.
  const bool on_its_way = sent || sent.code() == Errc::peer_gone;
  if (on_its_way && answer.wait_until(until) == std::future_status::ready) return answer.get();
  std::lock_guard lock(mutex_);
  if (answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return answer.get();
  const auto asked = asked_.find(request.request);
  if (on_its_way) {
    asked->second.waiting.reset();
    if (const auto* exported = std::get_if<shim::ExportRequest>(&request.body)) asked->second.leaving = exported->name;
    return Error{Errc::timed_out, "the nameserver did not answer in time"};
  }
  asked_.erase(asked);
  if (sent.code() == Errc::limit_reached)
    return Error{Errc::timed_out, "the nameserver did not read the request in time"};
  return sent.error();
}

/// Waits until the nameserver has released a name that this server has withdrawn, or that a request which timed out may
/// still get: an export would fail with name_taken.
Status Clerk::wait_until_left(const std::string& name) {
  std::unique_lock lock(mutex_);
  const bool left = left_.wait_for(lock, answer_time, [&] {
    return std::ranges::none_of(asked_, [&](const auto& one) { return one.second.leaving == name; });
  });
  if (left) return {};
  return Error{Errc::timed_out, "the nameserver has not let go of '" + name + "', which was withdrawn, in time"};
}

Result<ExportId> Clerk::export_interface(std::string name, std::shared_ptr<ServedInterface> interface) {
  if (!shim::valid_name(name)) return shim::not_a_name(name);
  if (watcher_.on_watcher_thread())
    return Error{Errc::invalid_argument, "an export waits for the nameserver: not in a callback of the server"};
  if (Status left = wait_until_left(name); !left) return left.error();
  auto link = linked();
  if (!link) return link.error();
  shim::BinderMessage request = export_request(0, name, *interface->pdl);
  if (auto fits = shim::encode(request); !fits) return fits.error();
  ExportedName exported(std::move(name), std::move(interface));
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_export_;
  exports_.emplace(id, std::move(exported));
  lock.unlock();
  const auto forget = [&] {  // the program's callbacks in it are destroyed without the lock
    const std::lock_guard again(mutex_);
    return exports_.extract(id);
  };
  Answer answer = Errc::limit_reached;
  try {
    answer = ask(**link, id, std::move(request));  // B1
  } catch (const std::bad_alloc&) {
    (void)forget();
    throw;
  }
  if (answer && std::holds_alternative<shim::Exported>(answer->body)) return ExportId{id};
  (void)forget();
  return answer ? why_not(*answer) : answer.error();
}

// B6
Status Clerk::withdraw(ExportId id) {
  std::shared_ptr<NameserverLink> link;
  decltype(exports_)::node_type withdrawn;  // the program's callbacks in it are destroyed without the lock
  Answer answer = Errc::limit_reached;
  try {
    std::unique_lock lock(mutex_);
    const auto found = exports_.find(static_cast<std::uint64_t>(id));
    if (found == exports_.end() || !found->second.established())
      return Error{Errc::invalid_argument, "there is no such export"};
    withdrawn = exports_.extract(found);  // first, and without memory: it is not exported again, whatever fails now
    const ExportedName& name = withdrawn.mapped();
    const std::uint64_t registered = name.registered();
    // A name that no nameserver has is not exported again. If a request for it is under way, on_answer() finds no
    // export and withdraws the name.
    if (registered != 0) link = link_;
    for (auto& [number, asked] : asked_)
      if (asked.export_id == withdrawn.key()) asked.leaving = name.name();
    if (link == nullptr) return {};
    if (watcher_.on_watcher_thread()) return withdraw_soon_locked(link, registered, name.name()), Status();
    lock.unlock();
    answer = ask(*link, withdrawn.key(), {0, shim::WithdrawRequest{registered}, {}, {}});
  } catch (const std::bad_alloc&) {
    if (link != nullptr) link->break_off();  // as below
    throw;
  }
  if (answer) {
    if (auto* failed = std::get_if<shim::Failed>(&answer->body)) return Error{failed->code, failed->text};
    return {};
  }
  if (answer.code() == Errc::peer_gone) return {};  // the name went with the nameserver
  // It may still have the name: closing the connection ends that for certain, and the other names are exported again.
  link->break_off();
  return answer.error();
}

void Clerk::close() {
  std::shared_ptr<NameserverLink> link;
  decltype(exports_) exports;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    link = std::move(link_);
    exports.swap(exports_);
    let_go_of_asked_locked({Errc::peer_gone, {}});  // a procedure that waits for an answer must not keep the server
  }
  // Outside the lock: a callback that runs now may take it.
  if (link == nullptr) return;
  watcher_.unwatch(link->watch);
  link->break_off();
}

void Clerk::let_go_of_asked_locked(const Error& why) {
  for (auto& [number, asked] : asked_)
    if (asked.waiting) asked.waiting->set_value(copy_of(why));
  asked_.clear();
  left_.notify_all();
}

// ---- The nameserver's messages, on the watcher's thread ----

/// If there is no memory for the nameserver's message, the connection ends, and a new one begins.
void Clerk::on_nameserver(const std::shared_ptr<NameserverLink>& link, shim::Watcher::Id watch) {
  try {
    link->hear_several([&] { return hear(link, watch); });
  } catch (const std::bad_alloc&) {
    link->break_off();
    throw;  // so that the watcher calls this again, and hear() finds the end
  }
}

bool Clerk::hear(const std::shared_ptr<NameserverLink>& link, shim::Watcher::Id watch) {
  auto received = shim::receive_message(link->fd(), std::chrono::milliseconds(0));
  if (!received) {
    // The end of the connection, or garbage. Either way a new connection is made.
    hang_up_nameserver(link, watch, received.code() == Errc::peer_gone ? link->last_words : received.error());
    return false;
  }
  if (!received->has_value()) return false;
  shim::BinderMessage message = std::move(**received);
  if (std::holds_alternative<shim::BindRequest>(message.body)) {
    on_bind_request(link, std::move(message));
  } else if (std::holds_alternative<shim::PollerPage>(message.body)) {
    if (message.fds.size() == 1) grant_.attach(std::move(message.fds.front()));
  } else {
    on_answer(link, std::move(message));
  }
  return true;
}

void Clerk::on_answer(const std::shared_ptr<NameserverLink>& link, shim::BinderMessage message) {
  const auto* failed = std::get_if<shim::Failed>(&message.body);
  const auto* done = std::get_if<shim::Exported>(&message.body);
  std::vector<RegistrationNews> news;
  news.reserve(1);
  {
    std::lock_guard lock(mutex_);
    const auto found = asked_.find(message.request);
    if (found == asked_.end()) {
      // Nobody waits for this answer. One to request 0 says why the nameserver is about to hang up.
      if (failed != nullptr && message.request == 0) link->last_words = Error{failed->code, failed->text};
      return;
    }
    Asked& asked = found->second;  // in asked_ until all is done: if this throws, the hang-up answers it
    if (done != nullptr) {
      // Recorded before the next message is read, which may be a bind request for this name.
      on_exported_locked(link, asked, done->export_id, news);
    } else if (const auto it = exports_.find(asked.export_id); it != exports_.end() && it->second.established()) {
      it->second.refused(why_not(message), news);
      retry_later_locked();
    }
    if (asked.waiting) asked.waiting->set_value(std::move(message));
    if (!asked.leaving.empty())
      left_.notify_all();  // a withdrawal that has followed is in asked_ by now: those threads wait on
    asked_.erase(found);
  }
  tell(news);
  register_missing();
}

// B3
void Clerk::on_exported_locked(const std::shared_ptr<NameserverLink>& link, const Asked& asked,
                               std::uint64_t registered, std::vector<RegistrationNews>& news) {
  const auto found = exports_.find(asked.export_id);
  // Withdrawn; or the thread that waited for a first export gave up: it takes the export out once it has the lock.
  if (found == exports_.end() || (!found->second.established() && !asked.waiting))
    return withdraw_soon_locked(link, registered, asked.leaving);
  pause_ = kFirstPause;
  found->second.granted(registered, news);
}

// B16
void Clerk::hang_up_nameserver(const std::shared_ptr<NameserverLink>& link, shim::Watcher::Id watch, const Error& why) {
  std::vector<RegistrationNews> news;
  {
    std::lock_guard lock(mutex_);
    news.reserve(exports_.size());  // what follows needs no memory, except for the text
  }
  watcher_.unwatch(watch);
  link->break_off();
  grant_.detach();  // no allocator rules any more
  {
    std::lock_guard lock(mutex_);
    if (link_ != link) return;  // close() was faster
    link_.reset();
    let_go_of_asked_locked(why);
    for (auto& [id, exported] : exports_) {
      if (exported.established() && exported.lost(why, news)) pause_ = kFirstPause;
    }
    retry_later_locked();
  }
  tell(news);
}

/// Withdraws a name without waiting for the answer; only a thread that exports the same name again waits for it.
void Clerk::withdraw_soon_locked(const std::shared_ptr<NameserverLink>& link, std::uint64_t registered,
                                 std::string name) {
  shim::BinderMessage request{++last_request_, shim::WithdrawRequest{registered}, {}, {}};
  asked_.emplace(request.request, Asked{.export_id = 0, .waiting = std::nullopt, .leaving = std::move(name)});
  try {
    link->send_soon(std::move(request));
  } catch (const std::bad_alloc&) {
    link->break_off();  // the hang-up answers the request
    throw;
  }
}

// ---- Names that come back, on the watcher's thread ----

bool Clerk::anything_missing_locked() const {
  return std::ranges::any_of(exports_, [](const auto& one) { return one.second.missing(); });
}

void Clerk::retry_later_locked() noexcept {
  if (retry_posted_ || closed_ || !anything_missing_locked()) return;
  retry_posted_ = watcher_.post(retry_, static_cast<std::uint32_t>(pause_.count()));
  pause_ = std::min(pause_ * 2, kLongestPause);
}

// B4
void Clerk::on_retry() {
  std::vector<std::string> sockets;
  {
    std::lock_guard lock(mutex_);
    retry_posted_ = false;
    if (closed_ || !anything_missing_locked()) return;
    for (auto& [id, exported] : exports_) exported.ask_again();
    if (link_ == nullptr) sockets = sockets_;
  }
  if (!sockets.empty()) {
    auto socket = shim::connect_first_of(sockets, false);
    std::lock_guard lock(mutex_);
    if (socket && link_ == nullptr) (void)adopt_locked(*std::move(socket), std::move(sockets));
  }
  register_missing();
}

/// Asks the nameserver, if there is one, for names that it does not have: a few at a time, so that answers to bind
/// requests find room in its queue. on_answer() calls this again; after a failure, on_retry() does.
void Clerk::register_missing() {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  if (link_ == nullptr) return retry_later_locked();
  auto under_way = std::ranges::count_if(exports_, [](const auto& one) { return one.second.under_way(); });
  for (auto& [id, exported] : exports_) {
    if (!exported.to_be_asked_for()) continue;
    if (++under_way > kExportsAtOnce) return;
    const auto request = export_request(++last_request_, exported.name(), *exported.interface()->pdl);
    const auto asked = asked_.emplace(request.request, Asked{.export_id = id, .waiting = std::nullopt}).first;
    Errc sent = Errc::limit_reached;
    try {
      sent = shim::send_message(link_->fd(), request, kDoNotWait).code();
    } catch (const std::bad_alloc&) {
    }
    if (sent != Errc::ok) {
      asked_.erase(asked);
      return retry_later_locked();
    }
    exported.asked();
  }
}

// ---- The processor allocator, on the watcher's thread ----

void Clerk::wake_allocator() {
  std::shared_ptr<NameserverLink> link;
  {
    std::lock_guard lock(mutex_);
    link = link_;
  }
  if (link != nullptr) link->send_soon({0, shim::WakeAllocator{}, {}, {}});
}

// ---- Bind requests, on the watcher's thread ----

std::shared_ptr<ServedInterface> Clerk::exported(std::uint64_t registered) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(exports_, registered, [](const auto& one) { return one.second.registered(); });
  return registered != 0 && found != exports_.end() ? found->second.interface() : nullptr;
}

// B11
void Clerk::on_bind_request(const std::shared_ptr<NameserverLink>& link, shim::BinderMessage message) {
  auto& request = std::get<shim::BindRequest>(message.body);
  Result<std::uint64_t> bound = Errc::limit_reached;
  try {
    const auto interface = exported(request.export_id);
    bound = interface != nullptr ? bind_introduced(bindings_, interface, link->fd(), message)
                                 : Result<std::uint64_t>(Error{Errc::name_unknown, "the name has been withdrawn"});
  } catch (const std::bad_alloc&) {
  }
  std::string text = bound ? std::string() : bound.error().message();
  link->send_soon({message.request, shim::BindReply{request.binding_id, bound.code(), std::move(text)}, {}, {}});
  if (bound) bindings_.expect_call(*bound);
}

}  // namespace lrpc::server
