#compdef pitlake
_pitlake() {
  local line
  local -a found abouts
  for line in "${(@f)$("$words[1]" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :file) _files ;;
      :folder) _files -/ ;;
      *) found+=("${line%% *}") abouts+=("$line") ;;
    esac
  done
  (( $#found == 0 )) || compadd -l -d abouts -a found
}
compdef _pitlake pitlake
