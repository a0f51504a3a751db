"use strict";(self.rspackChunklakekit_lab=self.rspackChunklakekit_lab||[]).push([[232],{25(e,t,o){var r=o(26),n=o.n(r),a=o(27),i=(o.n(a))()(n());i.push([e.id,`.lakekit-plain {
  color: var(--jp-content-font-color1);
}

.lakekit-Panel {
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  display: flex;
  flex-direction: column;
  font-size: var(--jp-ui-font-size1);
  min-width: 200px;
  overflow: hidden;
}

.lakekit-Panel-header {
  align-items: center;
  display: flex;
  gap: 8px;
  padding: 8px 8px 4px 12px;
}

.lakekit-Panel-header h2 {
  font-size: var(--jp-ui-font-size1);
  font-weight: 600;
  margin: 0;
}

.lakekit-Panel-place {
  color: var(--jp-ui-font-color2);
  flex: 1;
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.lakekit-Panel-refresh {
  background: none;
  border: none;
  border-radius: 2px;
  cursor: pointer;
  display: flex;
  padding: 4px;
}

.lakekit-Panel-refresh:hover {
  background: var(--jp-layout-color2);
}

.lakekit-Panel-refresh svg {
  display: block;
  width: 16px;
}

.lakekit-Panel input.lakekit-Panel-filter {
  box-sizing: border-box;
  flex: none;
  font-size: var(--jp-ui-font-size1);
  height: 26px;
  margin: 4px 12px 8px;
}

.lakekit-Panel-message {
  color: var(--jp-ui-font-color1);
  line-height: 1.5;
  margin: 0;
  overflow-wrap: anywhere;
  padding: 8px 12px;
}

.lakekit-Panel-message p {
  margin: 0 0 12px;
}

.lakekit-Tree {
  flex: 1;
  overflow: auto;
  padding-bottom: 16px;
}

.lakekit-Row {
  align-items: center;
  cursor: pointer;
  display: flex;
  gap: 6px;
  line-height: 22px;
  padding-right: 8px;
  white-space: nowrap;
}

.lakekit-Row:hover {
  background: var(--jp-layout-color2);
}

.lakekit-Row:focus-visible {
  outline: 1px solid var(--jp-brand-color1);
  outline-offset: -1px;
}

.lakekit-Row[data-kind='column'],
.lakekit-Row[data-kind='note'] {
  cursor: default;
}

.lakekit-Row-arrow {
  color: var(--jp-ui-font-color2);
  flex: none;
  text-align: center;
  width: 12px;
}

.lakekit-Row-name {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: pre;
}

.lakekit-Row[data-kind='database'] .lakekit-Row-name {
  font-weight: 600;
}

.lakekit-Row-type {
  color: var(--jp-ui-font-color2);
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-ui-font-size0);
  min-width: 3em;
  overflow: hidden;
  text-overflow: ellipsis;
}

.lakekit-Row-note {
  color: var(--jp-ui-font-color2);
  font-style: italic;
}

.lakekit-Row-error {
  color: var(--jp-error-color1);
  overflow-wrap: anywhere;
  white-space: normal;
}

.lakekit-Badge {
  border: 1px solid var(--jp-border-color1);
  border-radius: 8px;
  color: var(--jp-ui-font-color2);
  flex: none;
  font-size: var(--jp-ui-font-size0);
  line-height: 14px;
  padding: 0 6px;
}
`,""]),o.d(t,{},{A:i})},27(e){e.exports=function(e){var t=[];return t.toString=function(){return this.map(function(t){var o="",r=void 0!==t[5];return t[4]&&(o+="@supports (".concat(t[4],") {")),t[2]&&(o+="@media ".concat(t[2]," {")),r&&(o+="@layer".concat(t[5].length>0?" ".concat(t[5]):""," {")),o+=e(t),r&&(o+="}"),t[2]&&(o+="}"),t[4]&&(o+="}"),o}).join("")},t.i=function(e,o,r,n,a){"string"==typeof e&&(e=[[null,e,void 0]]);var i={};if(r)for(var l=0;l<this.length;l++){var s=this[l][0];null!=s&&(i[s]=!0)}for(var c=0;c<e.length;c++){var p=[].concat(e[c]);r&&i[p[0]]||(void 0!==a&&(void 0===p[5]||(p[1]="@layer".concat(p[5].length>0?" ".concat(p[5]):""," {").concat(p[1],"}")),p[5]=a),o&&(p[2]&&(p[1]="@media ".concat(p[2]," {").concat(p[1],"}")),p[2]=o),n&&(p[4]?(p[1]="@supports (".concat(p[4],") {").concat(p[1],"}"),p[4]=n):p[4]="".concat(n)),t.push(p))}},t}},26(e){e.exports=function(e){return e[1]}},19(e){var t=[];function o(e){for(var o=-1,r=0;r<t.length;r++)if(t[r].identifier===e){o=r;break}return o}function r(e,r){for(var n={},a=[],i=0;i<e.length;i++){var l=e[i],s=r.base?l[0]+r.base:l[0],c=n[s]||0,p="".concat(s," ").concat(c);n[s]=c+1;var u=o(p),d={css:l[1],media:l[2],sourceMap:l[3],supports:l[4],layer:l[5]};if(-1!==u)t[u].references++,t[u].updater(d);else{var f=function(e,t){var o=t.domAPI(t);return o.update(e),function(t){t?(t.css!==e.css||t.media!==e.media||t.sourceMap!==e.sourceMap||t.supports!==e.supports||t.layer!==e.layer)&&o.update(e=t):o.remove()}}(d,r);r.byIndex=i,t.splice(i,0,{identifier:p,updater:f,references:1})}a.push(p)}return a}e.exports=function(e,n){var a=r(e=e||[],n=n||{});return function(e){e=e||[];for(var i=0;i<a.length;i++){var l=o(a[i]);t[l].references--}for(var s=r(e,n),c=0;c<a.length;c++){var p=o(a[c]);0===t[p].references&&(t[p].updater(),t.splice(p,1))}a=s}}},21(e){var t={};e.exports=function(e,o){var r=function(e){if(void 0===t[e]){var o=document.querySelector(e);if(window.HTMLIFrameElement&&o instanceof window.HTMLIFrameElement)try{o=o.contentDocument.head}catch(e){o=null}t[e]=o}return t[e]}(e);if(!r)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");r.appendChild(o)}},23(e){e.exports=function(e){var t=document.createElement("style");return e.setAttributes(t,e.attributes),e.insert(t,e.options),t}},22(e,t,o){e.exports=function(e){var t=o.nc;t&&e.setAttribute("nonce",t)}},20(e){e.exports=function(e){if("u"<typeof document)return{update:function(){},remove:function(){}};var t=e.insertStyleElement(e);return{update:function(o){var r,n,a;r="",o.supports&&(r+="@supports (".concat(o.supports,") {")),o.media&&(r+="@media ".concat(o.media," {")),(n=void 0!==o.layer)&&(r+="@layer".concat(o.layer.length>0?" ".concat(o.layer):""," {")),r+=o.css,n&&(r+="}"),o.media&&(r+="}"),o.supports&&(r+="}"),(a=o.sourceMap)&&"u">typeof btoa&&(r+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(a))))," */")),e.styleTagTransform(r,t,e.options)},remove:function(){var e;null===(e=t).parentNode||e.parentNode.removeChild(e)}}}},24(e){e.exports=function(e,t){if(t.styleSheet)t.styleSheet.cssText=e;else{for(;t.firstChild;)t.removeChild(t.firstChild);t.appendChild(document.createTextNode(e))}}},18(e,t,o){var r=o(19),n=o.n(r),a=o(20),i=o.n(a),l=o(21),s=o.n(l),c=o(22),p=o.n(c),u=o(23),d=o.n(u),f=o(24),v=o.n(f),k=o(25),h={};h.styleTagTransform=v(),h.setAttributes=p(),h.insert=s().bind(null,"head"),h.domAPI=i(),h.insertStyleElement=d(),n()(k.A,h),k.A&&k.A.locals&&k.A.locals}}]);