// A name that a server exports, whether a nameserver has it just now or not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "call/served_binding.h"

namespace lrpc::server {

/// A call of ExportOptions::on_registration that is due once no lock is held.
struct RegistrationNews {
  std::shared_ptr<ServedInterface> interface;
  Status status;
};
void tell(const std::vector<RegistrationNews>& news) noexcept;
/// A copy, without the text if there is no memory for it.
[[nodiscard]] Error copy_of(const Error& error) noexcept;

/// The states of a name, from the first request until it is withdrawn. Pure: the clerk talks to nameservers. The caller
/// keeps room in `news` for one more. A state is reported once, however often it is entered in a row.
class ExportedName {
 public:
  ExportedName(std::string name, std::shared_ptr<ServedInterface> interface) noexcept
      : name_(std::move(name)), interface_(std::move(interface)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::shared_ptr<ServedInterface>& interface() const noexcept { return interface_; }
  /// The name has been granted once, so the program has its id, or gets it now: if the name is lost, it is exported
  /// again.
  [[nodiscard]] bool established() const noexcept { return established_; }
  /// Its id at the nameserver that has it now; 0: none has it.
  [[nodiscard]] std::uint64_t registered() const noexcept { return registered_; }
  [[nodiscard]] bool missing() const noexcept { return established_ && registered_ == 0; }
  [[nodiscard]] bool under_way() const noexcept { return established_ && asked_; }
  [[nodiscard]] bool to_be_asked_for() const noexcept { return missing() && !asked_ && !refused_; }

  void asked() noexcept { asked_ = true; }
  void ask_again() noexcept { refused_ = false; }  ///< After a refusal.
  void granted(std::uint64_t id, std::vector<RegistrationNews>& news) noexcept;
  void refused(Error why, std::vector<RegistrationNews>& news) noexcept;
  /// The nameserver has hung up. For an established name only. True: the nameserver had the name.
  bool lost(const Error& why, std::vector<RegistrationNews>& news) noexcept;

 private:
  void change(Error why, std::vector<RegistrationNews>& news) noexcept;

  std::string name_;
  std::shared_ptr<ServedInterface> interface_;
  bool established_ = false;
  bool asked_ = false;    ///< The nameserver has been asked and has not answered.
  bool refused_ = false;  ///< It has refused; it is asked again after the pause.
  std::uint64_t registered_ = 0;
  Errc told_ = Errc::ok;  ///< The state that was last reported to on_registration.
};

}  // namespace lrpc::server
